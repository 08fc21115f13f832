use super::*;

type Parts<'a> = (Option<&'a str>, &'a str, Option<u16>, &'a [u8]);

fn parts(target: &Target) -> Parts<'_> {
    (target.user(), target.host(), target.port(), target.path())
}

#[test]
fn both_forms_are_taken_apart() {
    let table: &[(&[u8], Parts<'_>)] = &[
        (b"sftp://host/a/b", (None, "host", None, b"/a/b")),
        (b"SFTP://host/a", (None, "host", None, b"/a")),
        (
            b"sftp://ada@host:22/a",
            (Some("ada"), "host", Some(22), b"/a"),
        ),
        (b"sftp://a%40b@host/a", (Some("a@b"), "host", None, b"/a")),
        (b"sftp://a@b@host/a", (Some("a@b"), "host", None, b"/a")),
        (b"sftp://host:/a", (None, "host", None, b"/a")),
        (b"sftp://host", (None, "host", None, b".")),
        (b"sftp://host/", (None, "host", None, b"/")),
        (b"sftp://host/~", (None, "host", None, b".")),
        (b"sftp://host/~/", (None, "host", None, b".")),
        (b"sftp://host/~/a", (None, "host", None, b"a")),
        (b"sftp://host/~ada/a", (None, "host", None, b"/~ada/a")),
        (b"sftp://host/%7E/a", (None, "host", None, b"/~/a")),
        (
            b"sftp://host//a/../b/./c",
            (None, "host", None, b"//a/../b/./c"),
        ),
        (b"sftp://host/a?b#c;d", (None, "host", None, b"/a?b#c;d")),
        (b"sftp://host/%ff%20%25", (None, "host", None, b"/\xff %")),
        (b"sftp://host/C:/Users", (None, "host", None, b"/C:/Users")),
        (b"sftp://[::1]/a", (None, "::1", None, b"/a")),
        (
            b"sftp://u@[fe80::1%eth0]:2222/a",
            (Some("u"), "fe80::1%eth0", Some(2222), b"/a"),
        ),
        (b"host:a b", (None, "host", None, b"a b")),
        (b"host:/a", (None, "host", None, b"/a")),
        (b"host:", (None, "host", None, b".")),
        (b"host:~", (None, "host", None, b".")),
        (b"host:~/a", (None, "host", None, b"a")),
        (b"host:a%20b", (None, "host", None, b"a%20b")),
        (b"host:a:b@c", (None, "host", None, b"a:b@c")),
        (b"host:\xff", (None, "host", None, b"\xff")),
        (b"ada@host:a", (Some("ada"), "host", None, b"a")),
        (b"a@b@host:a", (Some("a@b"), "host", None, b"a")),
        (b"[::1]:a", (None, "::1", None, b"a")),
        (b"ada@[::1]:/a", (Some("ada"), "::1", None, b"/a")),
        (b"[host]:a", (None, "host", None, b"a")),
    ];
    for (text, expected) in table {
        let shown = String::from_utf8_lossy(text);
        let target = Target::parse(text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!(parts(&target), *expected, "{shown}");
    }
}

#[test]
fn every_target_survives_being_shown_as_a_url() {
    let paths: &[&[u8]] = &[
        b".",
        b"/",
        b"a",
        b"/a",
        b"~",
        b"/~",
        b"/~/x",
        b"~/x",
        b"//",
        b"a/b?c#d%25",
        b"/\xff\x01",
        b"/ ",
        b"..",
        b"/~x",
        b"a:b",
        b"@",
    ];
    for host in ["host", "::1", "fe80::1%eth0", "1.2.3.4", "h_st"] {
        for user in [None, Some("ada"), Some("a@b"), Some("a:b;c d")] {
            for port in [None, Some(1), Some(65535)] {
                for path in paths {
                    let target = Target {
                        user: user.map(str::to_owned),
                        host: host.to_owned(),
                        port,
                        path: path.to_vec(),
                    };
                    let url = target.to_string();
                    assert!(url.is_ascii(), "{url}");
                    assert_eq!(url.parse().as_ref(), Ok(&target), "{url}");
                }
            }
        }
    }
}

#[test]
fn wrong_ones_say_which_part() {
    let table: &[(&[u8], TargetError)] = &[
        (b"", TargetError::Local),
        (b"a", TargetError::Local),
        (b"./a:b", TargetError::Local),
        (b"/a:b", TargetError::Local),
        (b":a", TargetError::Local),
        (b"[::1", TargetError::Local),
        (b"@host:a", TargetError::User),
        (b"-x@host:a", TargetError::User),
        (b"-oProxyCommand=x:a", TargetError::Host),
        (b"ada@:a", TargetError::Host),
        (b"[::g]:a", TargetError::Host),
        (b"a b:c", TargetError::Host),
        (b"\xff:a", TargetError::Host),
        (b"http://host/a", TargetError::Scheme("http".into())),
        (b"sftp:///a", TargetError::Host),
        (b"sftp://ada@/a", TargetError::Host),
        (b"sftp://[::1/a", TargetError::Host),
        (b"sftp://[::1]x/a", TargetError::Host),
        (b"sftp://[1.2.3.4]/a", TargetError::Host),
        (b"sftp://-h/a", TargetError::Host),
        (b"sftp://%2Dh/a", TargetError::Host),
        (b"sftp://h%2Fx/a", TargetError::Host),
        (b"sftp://@host/a", TargetError::User),
        (b"sftp://%ff@host/a", TargetError::User),
        (b"sftp://ada:secret@host/a", TargetError::Password),
        (b"sftp://ada;fingerprint=x@host/a", TargetError::Password),
        (b"sftp://host:0/a", TargetError::Port),
        (b"sftp://host:65536/a", TargetError::Port),
        (b"sftp://host:+22/a", TargetError::Port),
        (b"sftp://host:x/a", TargetError::Port),
        (b"sftp://host/100%", TargetError::Escape),
        (b"sftp://host/%g0", TargetError::Escape),
        (b"sftp://host/%+1", TargetError::Escape),
        (b"sftp://host/%00", TargetError::Nul),
        (b"host:a\0b", TargetError::Nul),
    ];
    for (text, error) in table {
        assert_eq!(
            Target::parse(text).as_ref(),
            Err(error),
            "{}",
            String::from_utf8_lossy(text)
        );
    }
}

#[test]
fn file_names_are_the_last_part_unless_it_names_no_file() {
    let name = |path: &[u8]| Target::from_path(path).file_name().map(<[u8]>::to_vec);
    assert_eq!(name(b"/a/b"), Some(b"b".to_vec()));
    assert_eq!(name(b"b"), Some(b"b".to_vec()));
    assert_eq!(name(b"a\\b"), Some(b"a\\b".to_vec()));
    for path in [&b"/"[..], b"", b".", b"a/..", b"a/.", b"a/"] {
        assert_eq!(name(path), None, "{path:?}");
    }
}
