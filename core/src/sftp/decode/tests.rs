//! The decoder on written packets: each whole, and split at every byte, must give the same.

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;

const VERSION_3: &[u8] = &[0, 0, 0, 5, 2, 0, 0, 0, 3];

fn packet(packet_type: u8, id: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 5).unwrap_or(u32::MAX);
    [
        &len.to_be_bytes()[..],
        &[packet_type],
        &id.to_be_bytes(),
        body,
    ]
    .concat()
}

fn string(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&len.to_be_bytes()[..], bytes].concat()
}

/// All that the decoder makes of `stream`, fed in pieces of `piece_len`; adjacent data joined.
fn decoded(stream: &[u8], piece_len: usize) -> (Vec<String>, Option<ProtocolError>) {
    let mut decoder = Decoder::new();
    let mut items: Vec<String> = Vec::new();
    let mut data: Vec<u8> = Vec::new();
    for mut piece in stream.chunks(piece_len) {
        loop {
            match decoder.handle_input(&mut piece) {
                Ok(None) => break,
                Ok(Some(Item::Data { bytes, .. })) => data.extend_from_slice(bytes),
                Ok(Some(item)) => {
                    if !data.is_empty() {
                        items.push(format!("data {:?}", core::mem::take(&mut data)));
                    }
                    items.push(format!("{item:?}"));
                }
                Err(error) => return (items, Some(error)),
            }
        }
    }
    (items, decoder.handle_eof().err())
}

/// What `stream` gives after VERSION, the same for every split.
fn after_version(stream: &[u8]) -> (Vec<String>, Option<ProtocolError>) {
    let stream = [VERSION_3, stream].concat();
    let whole = decoded(&stream, stream.len());
    for piece_len in 1..12 {
        assert_eq!(
            decoded(&stream, piece_len),
            whole,
            "in pieces of {piece_len}"
        );
    }
    (whole.0.into_iter().skip(2).collect(), whole.1)
}

#[test]
fn status_without_language_or_message_is_taken() {
    for body in [&[0, 0, 0, 2][..], &[0, 0, 0, 2, 0, 0, 0, 1, b'x']] {
        let (items, error) = after_version(&packet(SSH_FXP_STATUS, 7, body));
        assert_eq!((items.len(), error), (1, None));
        assert!(
            items[0].starts_with("Status { id: 7, code: StatusCode(2)"),
            "{items:?}"
        );
    }
}

#[test]
fn status_whose_message_length_lies_keeps_what_there_is() {
    let body = [0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff, b'n', b'o'];
    let (items, error) = after_version(&packet(SSH_FXP_STATUS, 1, &body));
    assert_eq!(error, None);
    assert!(items[0].contains("[110, 111]"), "{items:?}");
}

#[test]
fn data_may_be_followed_by_an_end_of_file_flag() {
    let body = [string(b"abc"), [1].to_vec()].concat();
    let (items, error) = after_version(&packet(SSH_FXP_DATA, 9, &body));
    let expected = [
        "DataStart { id: 9, len: 3 }",
        "data [97, 98, 99]",
        "DataEnd { id: 9 }",
    ];
    assert_eq!((items, error), (expected.map(String::from).to_vec(), None));
}

#[test]
fn data_longer_than_its_packet_is_an_error() {
    let (_, error) = after_version(&packet(SSH_FXP_DATA, 9, &[0, 0, 0, 4, b'a']));
    assert_eq!(
        error,
        Some(ProtocolError::FieldBeyondPacket {
            packet_type: SSH_FXP_DATA
        })
    );
}

#[test]
fn attributes_come_in_the_order_of_their_flags_and_pairs_are_skipped() {
    let body = [
        &0x8000_000f_u32.to_be_bytes()[..],
        &300_u64.to_be_bytes(),
        &[0, 0, 0, 1, 0, 0, 0, 2],
        &0o100_644_u32.to_be_bytes(),
        &[0, 0, 0, 3, 0, 0, 0, 4],
        &[0, 0, 0, 1],
        &string(b"acl@x"),
        &string(&[7; 300]),
    ]
    .concat();
    let (items, error) = after_version(&packet(SSH_FXP_ATTRS, 2, &body));
    let attrs = Attrs {
        size: Some(300),
        uid_gid: Some((1, 2)),
        permissions: Some(0o100_644),
        atime_mtime: Some((3, 4)),
    };
    assert_eq!(
        (items, error),
        (
            [format!("{:?}", Item::Attrs { id: 2, attrs })].to_vec(),
            None
        )
    );
}

#[test]
fn counts_beyond_their_packet_are_refused_before_they_are_used() {
    let huge = 0x4000_0000_u32.to_be_bytes();
    let (_, error) = after_version(&packet(SSH_FXP_NAME, 1, &huge));
    assert_eq!(error, Some(ProtocolError::NameCount(0x4000_0000)));
    let body = [&0x8000_0000_u32.to_be_bytes()[..], &huge].concat();
    let (_, error) = after_version(&packet(SSH_FXP_ATTRS, 1, &body));
    assert_eq!(error, Some(ProtocolError::AttrsExtendedCount(0x4000_0000)));
}

#[test]
fn names_come_entry_by_entry_and_long_names_are_cut() {
    let entry = |name: &[u8], long: &[u8]| [string(name), string(long), [0; 4].to_vec()].concat();
    let body = [
        &[0, 0, 0, 2][..],
        &entry(b"a\xff", &[b'-'; 400]),
        &entry(b"", b""),
    ]
    .concat();
    let (items, error) = after_version(&packet(SSH_FXP_NAME, 5, &body));
    assert_eq!((items.len(), error), (4, None), "start, two entries, end");
    let longname = [b'-'; ASIDE_LEN_MAX];
    let attrs = Attrs::default();
    let entry = Entry {
        filename: b"a\xff",
        longname: &longname,
        attrs,
    };
    assert_eq!(items[1], format!("{:?}", Item::Name { id: 5, entry }));
}

#[test]
fn handles_have_1_to_256_bytes() {
    for len in [0, 257] {
        let (_, error) = after_version(&packet(SSH_FXP_HANDLE, 1, &string(&[1; 257][..len])));
        assert_eq!(error, Some(ProtocolError::HandleLen(len_u32(len))));
    }
    let (items, error) = after_version(&packet(SSH_FXP_HANDLE, 1, &string(&[1; 256])));
    assert_eq!((items.len(), error), (1, None));
}

#[test]
fn lengths_that_no_packet_has_are_refused() {
    let head =
        |len: u32, packet_type: u8| [&len.to_be_bytes()[..], &[packet_type, 0, 0, 0, 1]].concat();
    for (len, packet_type, expected) in [
        (0, SSH_FXP_STATUS, ProtocolError::PacketTooShort(0)),
        (
            u32::MAX,
            SSH_FXP_DATA,
            ProtocolError::PacketTooLong(u32::MAX),
        ),
        (
            u32::MAX,
            SSH_FXP_NAME,
            ProtocolError::PacketTooLong(u32::MAX),
        ),
        (9, 77, ProtocolError::PacketTypeUnexpected(77)),
        (
            9,
            SSH_FXP_VERSION,
            ProtocolError::PacketTypeUnexpected(SSH_FXP_VERSION),
        ),
    ] {
        assert_eq!(after_version(&head(len, packet_type)).1, Some(expected));
    }
}

#[test]
fn text_before_version_is_kept_to_its_line_end_however_it_is_split() {
    let text = b"This system is for authorised use.\nlogin: ";
    for piece_len in 1..=text.len() {
        let mut decoder = Decoder::new();
        let mut error = None;
        for mut piece in text.chunks(piece_len) {
            error = error.or_else(|| decoder.handle_input(&mut piece).err());
        }
        assert_eq!(error, Some(ProtocolError::BannerText));
        assert_eq!(decoder.banner(), &text[..35], "in pieces of {piece_len}");
    }
}

#[test]
fn a_stream_that_ends_inside_a_packet_is_an_error() {
    let whole = packet(SSH_FXP_DATA, 1, &string(b"abc"));
    for len in 1..whole.len() {
        let (_, error) = after_version(&whole[..len]);
        assert_eq!(error, Some(ProtocolError::EofInsidePacket), "cut at {len}");
    }
}
