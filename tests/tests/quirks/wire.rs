//! What stands on the wire: STATUS that is cut, versions, text before VERSION, lengths that lie (group G).

use longhaul_core::engine::{Command, Config, Engine, OpEvent};
use longhaul_core::sftp::{PACKET_LEN_MAX, PATH_LEN_MAX, READ_LEN_MAX, StatusCode};
use longhaul_core::{Instant, OpError, ProtocolError, SubmitError};
use longhaul_tests::job::Job;
use longhaul_tests::model::{Malform, Quirks, StatusForm};

use crate::scene::{PATH, fetch, fetch_hostile, file, fixed, run, setup};

const MIB: u64 = 1 << 20;

// Q74
#[test]
fn a_status_without_message_or_language_counts_by_its_code() {
    for status_form in [
        StatusForm::Full,
        StatusForm::NoLanguage,
        StatusForm::NoMessage,
        StatusForm::LyingLanguage,
        StatusForm::LyingMessage,
    ] {
        let quirks = Quirks {
            status_form,
            ..Quirks::default()
        };
        // The end of a file of unknown size is a STATUS, and so is the reply to CLOSE.
        fetch(quirks.clone(), Config::default(), &file(1_000)).came_once(1_000);
        let ran = run(
            setup(quirks, Config::default(), &file(1)),
            Job::new("missing", file(1)),
        );
        let OpError::Status(error) = ran.job().failure() else {
            panic!("{:?}", ran.job().outcome);
        };
        assert_eq!(error.code, StatusCode::NO_SUCH_FILE);
        let has_message = matches!(
            status_form,
            StatusForm::Full | StatusForm::NoLanguage | StatusForm::LyingLanguage
        );
        let message: &[u8] = if has_message { b"No such file" } else { b"" };
        assert_eq!(error.message.as_slice(), message, "{status_form:?}");
    }
}

// Q76
#[test]
fn a_version_that_was_not_offered_is_named_in_the_error() {
    for version in [0, 1, 2, 4, 5, 6, u32::MAX] {
        let quirks = Quirks {
            version,
            ..Quirks::default()
        };
        let ran = fetch_hostile(quirks, Config::default(), &file(1));
        let error = ProtocolError::VersionUnsupported(version);
        assert_eq!(ran.job().failure(), &OpError::Protocol(error));
        assert_eq!(ran.world.error, Some(error));
        assert_eq!(ran.record().seen.len(), 1, "INIT, and nothing after it");
    }
}

// Q79
#[test]
fn text_before_version_is_kept_and_said_to_be_text() {
    for banner in [
        "This system is for authorised use only.\r\n",
        "\u{1b}[33mWelcome back\u{1b}[0m\n",
        "bash: warning: setlocale: LC_ALL: cannot change locale\n",
    ] {
        let quirks = Quirks {
            banner: banner.into(),
            ..Quirks::default()
        };
        let ran = fetch_hostile(quirks, Config::default(), &file(1));
        let error = OpError::Protocol(ProtocolError::BannerText);
        assert_eq!(ran.job().failure(), &error);
        let kept = ran.world.engine.banner();
        assert!(
            kept.starts_with(banner.trim_end().as_bytes()),
            "{:?}",
            kept.escape_ascii().to_string()
        );
    }
}

// Q115
#[test]
fn limits_of_2_to_the_63_make_no_request_longer_than_a_packet() {
    let quirks = Quirks {
        limits: Some([1 << 63; 4]),
        ..Quirks::default()
    };
    let ran = fetch(quirks, fixed(4, u32::MAX), &file(2 * MIB));
    ran.came_once(2 * MIB);
    assert_eq!(ran.world.engine.limits().read_len_max, READ_LEN_MAX);
}

/// An engine that has had VERSION.
fn greeted() -> (Box<Engine>, Instant) {
    let now = Instant::ZERO;
    let mut engine = Box::new(Engine::new(Config::default()));
    let mut out = [0; 1024];
    assert_eq!(engine.poll_transmit(now, &mut out), 9);
    let mut input: &[u8] = &[0, 0, 0, 5, 2, 0, 0, 0, 3];
    while engine
        .handle_input(now, &mut input)
        .expect("VERSION")
        .is_some()
    {}
    assert_eq!(engine.poll_event(), Some(OpEvent::Ready));
    (engine, now)
}

// Q116
#[test]
fn a_length_of_2_gib_is_refused_before_its_body_trickles_in() {
    // Nine bytes tell length, type and id: no more is waited for.
    for len in [PACKET_LEN_MAX + 1, 0x7fff_ffff, u32::MAX] {
        for packet_type in [103, 104, 105] {
            let (mut engine, now) = greeted();
            let head = [len.to_be_bytes().as_slice(), &[packet_type, 0, 0, 0, 1]].concat();
            let mut error = None;
            for byte in head {
                let mut input: &[u8] = &[byte];
                while !input.is_empty() && error.is_none() {
                    error = engine.handle_input(now, &mut input).err();
                }
            }
            // A directory of 256 KiB and more in one packet is met in the field.
            let expected = if packet_type == 104 && len == PACKET_LEN_MAX + 1 {
                None
            } else {
                Some(ProtocolError::PacketTooLong(len))
            };
            assert_eq!(error, expected, "{len} bytes of type {packet_type}");
        }
    }
    let quirks = Quirks {
        malform: Some((5, Malform::PacketLengthHuge)),
        ..Quirks::default()
    };
    let ran = fetch_hostile(quirks, fixed(4, 32_768), &file(MIB));
    let error = ProtocolError::PacketTooLong(u32::MAX);
    assert_eq!(ran.job().failure(), &OpError::Protocol(error));
}

// Q116
#[test]
fn a_path_that_is_too_long_fails_alone() {
    let (mut engine, now) = greeted();
    let path = vec![b'p'; PATH_LEN_MAX + 1];
    for command in [Command::Open(&path), Command::Stat(&path)] {
        assert_eq!(engine.submit(now, command), Err(SubmitError::PathTooLong));
    }
    assert!(engine.is_ready() && engine.ended().is_none());
    assert!(engine.submit(now, Command::Open(PATH.as_bytes())).is_ok());
}
