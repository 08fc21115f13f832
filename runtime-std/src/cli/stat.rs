//! `longhaul stat`.

use longhaul::{Attrs, FileType, Target};
use serde_json::json;

use super::exit::Failure;
use super::sessions::{Sessions, Tally};

pub(super) async fn stat(targets: &[Target], sessions: &mut Sessions<'_>) -> Result<(), Failure> {
    let mut tally = Tally::new();
    for target in targets {
        let result = show(target, sessions).await;
        tally.add(sessions.console, result)?;
    }
    tally.end()
}

async fn show(target: &Target, sessions: &mut Sessions<'_>) -> Result<(), Failure> {
    let client = sessions.client(target).await?;
    let stat = client.stat(target.path());
    let attrs = sessions.patiently(&client, target, stat).await;
    let attrs = attrs.map_err(|error| Failure::of(target, error))?;
    let console = sessions.console;
    if !console.is_json() {
        return console.print(&format!("{target}: {}", describe(&attrs)));
    }
    let times = attrs.atime_mtime;
    console.event(&json!({
        "event": "stat", "url": target.to_string(), "type": kind(&attrs), "size": attrs.size,
        "mode": attrs.permissions.map(|mode| format!("{:04o}", mode & 0o7777)),
        "uid": attrs.uid_gid.map(|(uid, _)| uid), "gid": attrs.uid_gid.map(|(_, gid)| gid),
        "mtime": times.map(|(_, mtime)| mtime), "atime": times.map(|(atime, _)| atime),
    }));
    Ok(())
}

fn kind(attrs: &Attrs) -> &'static str {
    match attrs.file_type() {
        FileType::Regular => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Other => "other",
        FileType::Unknown | _ => "unknown",
    }
}

/// What the server has told, on one line.
fn describe(attrs: &Attrs) -> String {
    let mut parts = vec![kind(attrs).to_owned()];
    if let Some(size) = attrs.size {
        parts.push(format!("{size} bytes"));
    }
    if let Some(mode) = attrs.permissions {
        parts.push(format!("mode {:04o}", mode & 0o7777));
    }
    if let Some((uid, gid)) = attrs.uid_gid {
        parts.push(format!("owner {uid}:{gid}"));
    }
    if let Some((atime, mtime)) = attrs.atime_mtime {
        parts.push(format!("modified {}", date(mtime)));
        parts.push(format!("accessed {}", date(atime)));
    }
    parts.join(", ")
}

/// Seconds since 1970 as `2026-11-30 22:54:06 UTC`.
fn date(seconds: u32) -> String {
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u32| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while day >= 365 + u32::from(is_leap(year)) {
        day -= 365 + u32::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u32::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!(
        "{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC",
        day + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_know_leap_years() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
            (u32::MAX, "2106-02-07 06:28:15 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn only_what_was_told_is_shown() {
        assert_eq!(describe(&Attrs::default()), "unknown");
        let attrs = Attrs {
            size: Some(7),
            permissions: Some(0o100_644),
            ..Attrs::default()
        };
        assert_eq!(describe(&attrs), "file, 7 bytes, mode 0644");
    }
}
