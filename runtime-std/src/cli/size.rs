//! Numbers of bytes, as people write and read them.

/// Parses `4096`, `64k`, `64KiB`, `1.5m`, `2g`: suffixes count by 1024.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let wrong = || format!("{text:?} is no number of bytes, such as 4096, 512k, 64m or 1g");
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && (fraction.is_empty() || shift == 0)) {
        return Err(wrong());
    }
    let unit = 1_u64 << shift;
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    // Six digits are finer than anybody means, and cannot overflow.
    let fraction: u64 = format!("{fraction:0<6.6}").parse().map_err(|_| wrong())?;
    let rest =
        u64::try_from(u128::from(unit) * u128::from(fraction) / 1_000_000).map_err(|_| wrong())?;
    whole
        .checked_mul(unit)
        .and_then(|bytes| bytes.checked_add(rest))
        .ok_or_else(wrong)
}

/// As for [`parse_bytes`], or `auto`, which is `None`.
pub(super) fn parse_window(text: &str) -> Result<Window, String> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(Window::Auto);
    }
    match parse_bytes(text)? {
        0 => Err("a window of nothing lets nothing through; leave it out, or say auto".into()),
        bytes => Ok(Window::Fixed(bytes)),
    }
}

/// A number of bytes with one decimal and a binary unit: `12.3 MiB`.
pub(crate) fn show_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (u128::from(bytes) * 10 / 1024, "KiB");
    for next in UNITS.into_iter().skip(1) {
        if tenths < 10240 {
            break;
        }
        (tenths, unit) = (tenths / 1024, next);
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// How many bytes may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// What the link turns out to hold.
    Auto,
    /// This many.
    Fixed(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_suffix() {
        let table = [
            ("0", 0),
            ("4096", 4096),
            ("1k", 1024),
            ("64K", 65536),
            ("64KiB", 65536),
            ("2m", 2 << 20),
            ("1.5M", 3 << 19),
            ("1g", 1 << 30),
            ("0.25t", 1 << 38),
            ("12b", 12),
        ];
        for (text, bytes) in table {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "k",
            ".5m",
            "1.",
            "1.5",
            "1x",
            "-1",
            "1 k",
            "1..2k",
            "99999999999t",
            "1e3",
        ] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        let table = [
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (64 << 20, "64.0 MiB"),
            (u64::MAX, "15.9 EiB"),
        ];
        for (bytes, text) in table {
            assert_eq!(show_bytes(bytes), text);
        }
        assert_eq!(parse_window("AUTO"), Ok(Window::Auto));
        assert_eq!(parse_window("1m"), Ok(Window::Fixed(1 << 20)));
        assert!(parse_window("0k").is_err());
    }
}
