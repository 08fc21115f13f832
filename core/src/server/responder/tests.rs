//! Dialogues with the responder, written by a small encoder of its own.

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::server::{MemoryFile, MemoryStorage, REPLY_LEN_MAX};
use crate::sftp::PACKET_LEN_MAX;

const VERSION_REPLY: &[u8] = b"\0\0\0\x20\x02\0\0\0\x03\0\0\0\x12limits@openssh.com\0\0\0\x011";
const FILES: &[MemoryFile<'_>] = &[
    MemoryFile {
        path: b"/dir/file",
        data: b"0123456789",
        mtime: 77,
    },
    MemoryFile::new(b"/large", &[b'x'; 300_000]),
];

type Served<const HANDLES: usize> = Responder<MemoryStorage<'static>, HANDLES>;

#[test]
fn init_is_answered_with_version_3_and_what_is_served() {
    let mut responder = served::<4>();
    assert_eq!(exchange(&mut responder, &init()), VERSION_REPLY);
}

#[test]
fn init_with_extensions_of_the_client_is_answered_all_the_same() {
    let mut packet = init();
    packet.extend_from_slice(b"\0\0\0\x01a\0\0\0\x01b");
    packet[3] += 10;
    assert_eq!(exchange(&mut served::<4>(), &packet), VERSION_REPLY);
}

#[test]
fn requests_before_init_and_a_second_init_are_errors() {
    let mut early: &[u8] = &with_path(17, 1, b"/", &[]);
    let error = served::<4>().handle_input(&mut early);
    assert_eq!(error, Err(ProtocolError::PacketTypeUnexpected(17)));

    let mut responder = initialised::<4>();
    let error = responder.handle_input(&mut init().as_slice());
    assert_eq!(error, Err(ProtocolError::PacketTypeUnexpected(1)));
    let mut after: &[u8] = &with_path(17, 1, b"/", &[]);
    assert_eq!(responder.handle_input(&mut after), error, "it sticks");
    assert_eq!(responder.poll_transmit(&mut [0; 99]), 0);
}

#[test]
fn a_file_is_opened_read_to_its_end_and_closed() {
    let mut responder = initialised::<4>();
    let handle = open(&mut responder, b"dir/file");
    assert_eq!(responder.handle_count(), 1);
    let reply = exchange(&mut responder, &read(5, &handle, 2, 5));
    assert_eq!(reply, b"\0\0\0\x0e\x67\0\0\0\x05\0\0\0\x0523456");
    let reply = exchange(&mut responder, &read(6, &handle, 7, 100));
    assert_eq!(reply, b"\0\0\0\x0c\x67\0\0\0\x06\0\0\0\x03789");
    for offset in [10, 11, u64::from(u32::MAX) + 1, u64::MAX] {
        let reply = exchange(&mut responder, &read(7, &handle, offset, 1));
        assert_eq!(reply, status(7, 1, "end of file"));
    }
    let reply = exchange(&mut responder, &read(8, &handle, 3, 0));
    assert_eq!(reply, b"\0\0\0\x09\x67\0\0\0\x08\0\0\0\0");
    let reply = exchange(&mut responder, &with_path(4, 9, &handle, &[]));
    assert_eq!(reply, status(9, 0, ""));
    assert_eq!(responder.handle_count(), 0);
}

#[test]
fn attributes_come_by_path_and_by_handle() {
    let mut responder = initialised::<4>();
    let expected =
        b"\0\0\0\x1d\x69\0\0\0\x01\0\0\0\x0d\0\0\0\0\0\0\0\x0a\0\0\x81\x24\0\0\0\x4d\0\0\0\x4d";
    for packet_type in [7, 17] {
        let reply = exchange(
            &mut responder,
            &with_path(packet_type, 1, b"/dir/file", &[]),
        );
        assert_eq!(reply, expected);
    }
    let handle = open(&mut responder, b"dir/file");
    let reply = exchange(&mut responder, &with_path(8, 1, &handle, &[]));
    assert_eq!(reply, expected);
    let reply = exchange(&mut responder, &with_path(17, 2, b"/dir", &[]));
    assert_eq!(reply, b"\0\0\0\x0d\x69\0\0\0\x02\0\0\0\x04\0\0\x41\x6d");
    let reply = exchange(&mut responder, &with_path(7, 3, b"/dir/none", &[]));
    assert_eq!(reply, status(3, 2, "no such file"));
}

#[test]
fn realpath_gives_one_absolute_name() {
    let mut responder = initialised::<4>();
    let reply = exchange(
        &mut responder,
        &with_path(16, 4, b"x/../../dir/./file", &[]),
    );
    let mut expected = b"\0\0\0\x22\x68\0\0\0\x04\0\0\0\x01\0\0\0\x09/dir/file".to_vec();
    expected.extend_from_slice(&[0; 8]);
    expected[3] = u8::try_from(expected.len() - 4).unwrap();
    assert_eq!(reply, expected);
}

#[test]
fn the_longest_path_fits_and_one_byte_more_is_an_error() {
    let mut responder = initialised::<4>();
    let mut path = vec![b'/'];
    path.resize(PATH_LEN_MAX, b'p');
    let reply = exchange(&mut responder, &with_path(16, 4, &path, &[]));
    assert_eq!(reply[17..17 + PATH_LEN_MAX], path);
    assert_eq!(reply.len(), NAME_LEN_MAX);
    let reply = exchange(&mut responder, &open_packet(5, &path, 1));
    assert_eq!(reply, status(5, 2, "no such file"));

    path.remove(0);
    let reply = exchange(&mut responder, &with_path(16, 6, &path, &[]));
    assert_eq!(reply.len(), NAME_LEN_MAX);
    path.push(b'p');
    let reply = exchange(&mut responder, &with_path(16, 7, &path, &[]));
    assert_eq!(reply, status(7, 5, "bad message"), "no room for the slash");

    path.push(b'p');
    let error = responder.handle_input(&mut with_path(17, 7, &path, &[]).as_slice());
    assert_eq!(error, Err(ProtocolError::NameTooLong(4097)));
}

#[test]
fn limits_tell_what_is_enforced() {
    let mut responder = initialised::<5>().with_read_len_max(1000);
    let reply = exchange(
        &mut responder,
        &with_path(200, 1, b"limits@openssh.com", &[]),
    );
    let limits: Vec<u64> = reply[9..]
        .chunks(8)
        .map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
        .collect();
    assert_eq!(reply[..9], *b"\0\0\0\x25\xc9\0\0\0\x01");
    assert_eq!(limits, [262_144, 1000, 0, 5]);
}

#[test]
fn opening_to_write_is_denied_and_reading_needs_no_flag() {
    let mut responder = initialised::<4>();
    for pflags in [2, 3, 9, 0x1a, 0x8000_0001] {
        let reply = exchange(&mut responder, &open_packet(3, b"dir/file", pflags));
        assert_eq!(reply, status(3, 3, "this server is read-only"));
    }
    let reply = exchange(&mut responder, &open_packet(3, b"dir/file", 0));
    assert_eq!(reply[4], 102);
}

#[test]
fn what_is_not_served_is_unsupported_however_long() {
    let mut responder = initialised::<4>();
    let body = vec![9; usize::try_from(PACKET_LEN_MAX).unwrap() - 5];
    for packet_type in [0, 2, 6, 9, 11, 12, 13, 18, 101, 199, 201, 255] {
        for body in [&[], &body[..20_000], &body] {
            let reply = exchange(&mut responder, &packet(packet_type, 8, body));
            assert_eq!(reply, status(8, 8, "operation unsupported"));
        }
    }
    for name in [b"".as_slice(), b"fsync@openssh.com", b"limits@openssh.co"] {
        let reply = exchange(&mut responder, &with_path(200, 9, name, &body[..10_000]));
        assert_eq!(reply, status(9, 8, "operation unsupported"));
    }
}

#[test]
fn reads_are_capped_and_need_room_for_the_whole_reply() {
    let mut responder = initialised::<4>();
    let handle = open(&mut responder, b"large");
    let mut input: &[u8] = &read(1, &handle, 0, u32::MAX);
    responder.handle_input(&mut input).unwrap();
    assert_eq!(responder.transmit_len(), REPLY_LEN_MAX);
    let mut out = vec![0; REPLY_LEN_MAX];
    for short in [0, 1, 13, 64, REPLY_LEN_MAX - 1] {
        assert_eq!(responder.poll_transmit(&mut out[..short]), 0);
    }
    assert_eq!(responder.poll_transmit(&mut out), REPLY_LEN_MAX);
    assert_eq!(out[9..13], READ_LEN_MAX.to_be_bytes());
    assert!(out[13..].iter().all(|&byte| byte == b'x'));
    assert_eq!(responder.transmit_len(), 0);
    // The end of the file cuts it.
    let reply = exchange(&mut responder, &read(2, &handle, 300_000 - 7, READ_LEN_MAX));
    assert_eq!(reply.len(), 20);

    let mut responder = responder.with_read_len_max(3);
    let reply = exchange(&mut responder, &read(3, &handle, 0, 1000));
    assert_eq!(reply, b"\0\0\0\x0c\x67\0\0\0\x03\0\0\0\x03xxx");
}

#[test]
fn stale_and_invented_handles_fail() {
    let mut responder = initialised::<1>();
    let stale = open(&mut responder, b"large");
    exchange(&mut responder, &with_path(4, 1, &stale, &[]));
    let fresh = open(&mut responder, b"large");
    assert_ne!(stale, fresh);
    for handle in [&stale[..], b"x", &[0xff; 8], &[7; 256]] {
        let invalid = status(2, 4, "invalid handle");
        for packet_type in [4, 8] {
            let reply = exchange(&mut responder, &with_path(packet_type, 2, handle, &[]));
            assert_eq!(reply, invalid);
        }
        assert_eq!(exchange(&mut responder, &read(2, handle, 0, 9)), invalid);
    }
    assert_eq!(responder.handle_count(), 1);
    for len in [0, 257] {
        let mut responder = initialised::<1>();
        let packet = with_path(4, 2, &vec![7; len], &[]);
        let error = responder.handle_input(&mut packet.as_slice());
        let len = u32::try_from(len).unwrap();
        assert_eq!(error, Err(ProtocolError::HandleLen(len)));
    }
}

#[test]
fn no_more_files_are_open_than_there_are_handles() {
    let mut responder = initialised::<2>();
    let first = open(&mut responder, b"large");
    open(&mut responder, b"large");
    let full = status(3, 4, "too many open files");
    assert_eq!(exchange(&mut responder, &open_packet(3, b"large", 1)), full);
    exchange(&mut responder, &with_path(4, 4, &first, &[]));
    open(&mut responder, b"large");
    assert_eq!(responder.handle_count(), 2);
}

#[test]
fn a_field_that_is_not_all_there_is_an_error() {
    let handle = [0; 8];
    let whole = [
        open_packet(1, b"large", 1),
        with_path(4, 1, &handle, &[]),
        read(1, &handle, 0, 1),
        with_path(7, 1, b"large", &[]),
        with_path(8, 1, &handle, &[]),
        with_path(16, 1, b"large", &[]),
        with_path(17, 1, b"large", &[]),
        with_path(200, 1, b"limits@openssh.com", &[]),
    ];
    for packet in whole {
        let packet_type = packet[4];
        // OPEN may do without its ATTRS.
        let needed = packet.len() - if packet_type == 3 { 4 } else { 0 };
        for len in 9..=packet.len() {
            let mut cut = packet[..len].to_vec();
            cut[..4].copy_from_slice(&u32::try_from(len - 4).unwrap().to_be_bytes());
            let result = initialised::<1>().handle_input(&mut cut.as_slice());
            let expected = if len < needed {
                Err(ProtocolError::FieldBeyondPacket { packet_type })
            } else {
                Ok(())
            };
            assert_eq!(result, expected, "type {packet_type}, {len} bytes");
        }
    }
}

#[test]
fn any_split_of_the_input_gives_the_same_replies() {
    let stream = dialogue();
    let whole = exchange(&mut served::<2>(), &stream);
    assert!(whole.len() > 2000, "{}", whole.len());
    for at in 0..stream.len() {
        let mut responder = served::<2>();
        let mut replies = exchange(&mut responder, &stream[..at]);
        replies.extend(exchange(&mut responder, &stream[at..]));
        assert_eq!(replies, whole, "split at {at}");
    }
    let mut responder = served::<2>();
    let bytes = stream.chunks(1);
    let replies: Vec<u8> = bytes
        .flat_map(|byte| exchange(&mut responder, byte))
        .collect();
    assert_eq!(replies, whole, "byte by byte");
}

#[test]
fn nothing_is_taken_while_a_reply_waits() {
    let stream = dialogue();
    let mut responder = served::<2>();
    let mut input = stream.as_slice();
    responder.handle_input(&mut input).unwrap();
    assert_eq!(input.len(), stream.len() - 9, "INIT alone");
    responder.handle_input(&mut input).unwrap();
    assert_eq!(input.len(), stream.len() - 9);
}

#[test]
fn the_end_of_input_closes_files_and_tells_a_cut_request() {
    let mut responder = initialised::<2>();
    open(&mut responder, b"large");
    assert_eq!(responder.handle_eof(), Ok(()));
    assert_eq!(responder.handle_count(), 0);

    let mut responder = initialised::<2>();
    exchange(&mut responder, &[0]);
    assert_eq!(responder.handle_eof(), Err(ProtocolError::EofInsidePacket));
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let dialogue = dialogue();
    let mut errors = 0;
    for round in 0..3000 {
        let mut stream = dialogue.clone();
        if round % 10 == 0 {
            stream = (0..200).map(|_| random.byte()).collect();
        }
        for _ in 0..=random.below(4) {
            let at = random.below(stream.len());
            stream[at] = random.byte();
        }
        let mut responder = served::<2>();
        let mut out = vec![0; REPLY_LEN_MAX];
        for chunk in stream.chunks(1 + random.below(400)) {
            let mut input = chunk;
            loop {
                let before = input.len();
                if responder.handle_input(&mut input).is_err() {
                    errors += 1;
                    break;
                }
                let len = responder.poll_transmit(&mut out);
                assert!(responder.handle_count() <= 2);
                if len == 0 && input.len() == before {
                    break;
                }
            }
        }
        let _ = responder.handle_eof();
    }
    assert!(errors > 100, "{errors}");
}

/// Declines everything with codes that make no sense, and answers with lengths that make none.
struct Broken;

impl Storage for Broken {
    type File = ();
    fn open(&mut self, _: &[u8]) -> Result<(), StatusCode> {
        Ok(())
    }
    fn close(&mut self, (): ()) -> Result<(), StatusCode> {
        Err(StatusCode(u32::MAX))
    }
    fn read(&mut self, (): &mut (), _: u64, _: &mut [u8]) -> Result<usize, StatusCode> {
        Ok(usize::MAX)
    }
    fn stat(&mut self, _: &[u8], _: bool) -> Result<Attrs, StatusCode> {
        Err(StatusCode::OK)
    }
    fn fstat(&mut self, (): &mut ()) -> Result<Attrs, StatusCode> {
        Err(StatusCode(31))
    }
    fn realpath(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize, StatusCode> {
        Ok(usize::MAX)
    }
}

#[test]
fn a_broken_storage_cannot_break_the_protocol() {
    let mut responder = Responder::<_, 1>::new(Broken);
    exchange(&mut responder, &init());
    let handle = open(&mut responder, b"");
    let reply = exchange(&mut responder, &read(1, &handle, 0, 50));
    assert_eq!(reply.len(), 63);
    let reply = exchange(&mut responder, &with_path(17, 1, b"", &[]));
    assert_eq!(reply, status(1, 4, "failure"));
    let reply = exchange(&mut responder, &with_path(16, 1, b"", &[]));
    assert_eq!(reply, status(1, 4, "failure"));
    let reply = exchange(&mut responder, &with_path(8, 1, &handle, &[]));
    assert_eq!(reply, status(1, 31, "no matching byte range lock"));
    let reply = exchange(&mut responder, &with_path(4, 1, &handle, &[]));
    assert_eq!(reply, status(1, u32::MAX, "unknown status"));
}

fn served<const HANDLES: usize>() -> Served<HANDLES> {
    Responder::new(MemoryStorage::new(FILES))
}

fn initialised<const HANDLES: usize>() -> Served<HANDLES> {
    let mut responder = served();
    exchange(&mut responder, &init());
    responder
}

/// Feeds `input` and returns every reply, each of which has to say its own length.
fn exchange<S: Storage, const HANDLES: usize>(
    responder: &mut Responder<S, HANDLES>,
    mut input: &[u8],
) -> Vec<u8> {
    let mut replies = Vec::new();
    loop {
        responder.handle_input(&mut input).unwrap();
        let mut out = vec![0xee; responder.transmit_len()];
        let len = responder.poll_transmit(&mut out);
        if len == 0 {
            assert!(input.is_empty());
            return replies;
        }
        let said = u32::from_be_bytes(out[..4].try_into().unwrap());
        assert_eq!(usize::try_from(said).unwrap() + 4, len);
        replies.extend_from_slice(&out[..len]);
    }
}

fn open<S: Storage, const HANDLES: usize>(
    responder: &mut Responder<S, HANDLES>,
    path: &[u8],
) -> Vec<u8> {
    let reply = exchange(responder, &open_packet(99, path, 1));
    let head = b"\0\0\0\x11\x66\0\0\0\x63\0\0\0\x08";
    assert_eq!(reply[..13], *head, "{reply:?}");
    reply[13..].to_vec()
}

/// A whole session: INIT, every request, two files, one too many, some that fail.
fn dialogue() -> Vec<u8> {
    let (first, second) = ([0; 8], [0, 0, 0, 1, 0, 0, 0, 0]);
    [
        init(),
        with_path(200, 1, b"limits@openssh.com", &[]),
        with_path(16, 2, b".", &[]),
        with_path(17, 3, b"dir/file", &[]),
        open_packet(4, b"dir/file", 1),
        open_packet(5, b"large", 1),
        open_packet(6, b"large", 1),
        with_path(8, 7, &first, &[]),
        read(8, &first, 0, 4),
        read(9, &second, 1000, 2000),
        read(10, &first, 4, 4000),
        read(11, &first, 10, 4000),
        packet(6, 12, &[5; 300]),
        with_path(4, 13, &first, &[]),
        read(14, &first, 0, 4),
        with_path(7, 15, b"none", &[]),
        with_path(4, 16, &second, &[]),
    ]
    .concat()
}

fn init() -> Vec<u8> {
    packet(1, 3, &[])
}

fn packet(packet_type: u8, id: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 5).unwrap();
    let head = [&len.to_be_bytes(), [packet_type].as_slice()].concat();
    [&head, id.to_be_bytes().as_slice(), body].concat()
}

/// A request that begins with a path, a name or a handle.
fn with_path(packet_type: u8, id: u32, path: &[u8], rest: &[u8]) -> Vec<u8> {
    let len = u32::try_from(path.len()).unwrap();
    packet(packet_type, id, &[&len.to_be_bytes(), path, rest].concat())
}

fn open_packet(id: u32, path: &[u8], pflags: u32) -> Vec<u8> {
    let rest = [pflags.to_be_bytes(), [0; 4]].concat();
    with_path(3, id, path, &rest)
}

fn read(id: u32, handle: &[u8], offset: u64, len: u32) -> Vec<u8> {
    let rest = [
        offset.to_be_bytes().as_slice(),
        len.to_be_bytes().as_slice(),
    ]
    .concat();
    with_path(5, id, handle, &rest)
}

fn status(id: u32, code: u32, message: &str) -> Vec<u8> {
    let message_len = u32::try_from(message.len()).unwrap();
    let body = [
        code.to_be_bytes().as_slice(),
        message_len.to_be_bytes().as_slice(),
        message.as_bytes(),
        &[0; 4],
    ]
    .concat();
    packet(101, id, &body)
}

/// xorshift64: enough to spread bytes over the input space.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[3]
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 1).unwrap() % bound
    }
}
