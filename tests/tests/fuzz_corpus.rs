//! Replays what the fuzzer found, or was given to start from, as plain tests: a panic or a hang is a
//! failure here as it is there.

use std::fs;
use std::path::Path;

use longhaul_tests::fuzz;

#[test]
fn decode_packet_corpus_replays() {
    replay("decode_packet", fuzz::decode_packet);
}

#[test]
fn session_bytes_corpus_replays() {
    replay("session_bytes", fuzz::session_bytes);
}

#[test]
fn machine_ops_corpus_replays() {
    replay("machine_ops", fuzz::machine_ops);
}

/// Runs each file of the target's corpus, in the order of their names, and shows which one it was
/// that failed: the name of the last one printed.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable corpus").path())
        .collect();
    paths.sort();
    assert!(
        !paths.is_empty(),
        "{} is empty: nothing is tested",
        folder.display()
    );
    for path in paths {
        eprintln!("{}", path.display());
        run(&fs::read(&path).expect("a readable input"));
    }
}
