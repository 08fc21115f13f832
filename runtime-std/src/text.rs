//! Text for error messages: one line, whatever the source.

use std::io;

/// What the system says of an error, without the number behind it.
pub(crate) fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" (os error ").unwrap_or(text.len());
    let mut chars = text
        .chars()
        .take(text.get(..end).map_or(0, |head| head.chars().count()));
    let mut line = String::new();
    if let Some(first) = chars.next() {
        line.extend(first.to_lowercase());
    }
    line.extend(chars);
    line
}

/// Bytes of a stranger as text that a terminal takes for text: control characters escaped, bad UTF-8 replaced.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut line = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        if is_unsafe(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// Control characters, and the marks that reverse or hide the text after them.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_lose_capital_and_number() {
        let error = io::Error::from_raw_os_error(2);
        let text = io_text(&error);
        assert!(!text.contains("os error"), "{text}");
        assert!(
            text.chars().next().is_some_and(char::is_lowercase),
            "{text}"
        );
        assert_eq!(io_text(&io::Error::other("plain")), "plain");
        assert_eq!(io_text(&io::Error::other("")), "");
    }

    #[test]
    fn terminal_sequences_become_visible() {
        assert_eq!(escaped(b"a\x1b[31mb\r\n"), "a\\u{1b}[31mb\\r\\n");
        assert_eq!(
            escaped("gr\u{fc}n \u{202e}x".as_bytes()),
            "gr\u{fc}n \\u{202e}x"
        );
        assert_eq!(escaped(b"\xff"), "\u{fffd}");
    }
}
