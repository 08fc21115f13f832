//! A link in virtual time: two byte streams, one each way.
//!
//! Aim: latency, rate, chunking, stalls, cuts and a channel window, cheap enough to move gigabytes.
//! Method: each direction is a queue of pieces with the picosecond at which their first byte goes
//! onto the wire. A link never loses or reorders bytes, as a stream doesn't: it delays, splits,
//! stalls and cuts. Payload stays a `&'static` slice on the whole way.

mod piece;
mod pipe;

use alloc::collections::VecDeque;

pub use piece::{Piece, flatten, pieces_len};
pub use pipe::{Chunking, Pipe};

use crate::rng::Rng;

/// What a link is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Nanoseconds one way.
    pub latency: u64,
    /// The most nanoseconds added to a chunk's latency; order is kept.
    pub jitter: u64,
    /// Bits a second each way; 0 is without limit.
    pub rate: u64,
    /// How the receiver finds the stream split.
    pub chunking: Chunking,
    /// The most bytes that the client's end takes before they go onto the wire.
    pub send_buffer: usize,
    /// The SSH channel window towards the client in bytes, if there is one.
    pub channel_window: Option<u64>,
    /// The bytes that the client consumes before it gives credit for them: what it withholds is
    /// missing from the window. OpenSSH's client withholds three packets of 32 KiB.
    pub credit_step: u64,
    /// The direction towards the client ends after this many bytes.
    pub cut_down: Option<u64>,
    /// The direction towards the server ends after this many bytes.
    pub cut_up: Option<u64>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            latency: 0,
            jitter: 0,
            rate: 0,
            chunking: Chunking::UpTo(1 << 20),
            send_buffer: 1 << 20,
            channel_window: None,
            credit_step: 3 * 32_768,
            cut_down: None,
            cut_up: None,
        }
    }
}

impl LinkConfig {
    /// Makes a link with a round trip of `rtt_ms` milliseconds and `rate` bits a second.
    #[must_use]
    pub fn new(rtt_ms: u64, rate: u64) -> Self {
        Self {
            latency: rtt_ms * crate::MS / 2,
            rate,
            ..Self::default()
        }
    }
}

/// The channel window of SSH: bytes that the server may still send.
#[derive(Clone, Debug)]
struct Channel {
    credit: u64,
    credit_step: u64,
    /// What the server has sent but has no credit for.
    held: VecDeque<Piece>,
    /// What the client has taken and not given credit for.
    taken: u64,
}

/// Both directions between a client and a server.
#[derive(Clone, Debug)]
pub struct Link {
    /// From the client to the server.
    pub up: Pipe,
    /// From the server to the client.
    pub down: Pipe,
    channel: Option<Channel>,
    send_buffer: usize,
}

impl Link {
    /// Makes a link; `rng` decides chunks and jitter.
    #[must_use]
    pub fn new(config: &LinkConfig, rng: &Rng) -> Self {
        let pipe = |name, cut| Pipe::new(config, rng.child(name), cut);
        let channel = |window| Channel {
            credit: window,
            credit_step: config.credit_step,
            held: VecDeque::new(),
            taken: 0,
        };
        Self {
            up: pipe("up", config.cut_up),
            down: pipe("down", config.cut_down),
            channel: config.channel_window.map(channel),
            send_buffer: config.send_buffer,
        }
    }

    /// Returns how many bytes the client's end takes at `now`.
    #[must_use]
    pub fn client_room(&self, now: u64) -> usize {
        self.send_buffer.saturating_sub(self.up.unsent(now))
    }

    /// Returns the moment at which the client's end takes bytes again, if it has `waiting` of them: enough
    /// to be worth a turn.
    #[must_use]
    pub fn room_at(&self, now: u64, waiting: usize) -> u64 {
        let wanted = waiting.min(self.send_buffer.div_ceil(2)).max(1);
        self.up
            .unsent_at(now, self.send_buffer.saturating_sub(wanted))
    }

    /// Sends bytes from the client.
    pub fn client_send(&mut self, now: u64, bytes: &[u8]) {
        self.up.send(now, Piece::from(bytes));
    }

    /// Takes the next chunk that has reached the client by `now`.
    pub fn client_receive(&mut self, now: u64) -> Option<Piece> {
        self.down.receive(now)
    }

    /// Notes that the client has consumed `len` bytes; credit goes to the server once a step of
    /// it has come together.
    pub fn client_consumed(&mut self, now: u64, len: u64) {
        let Some(channel) = &mut self.channel else {
            return;
        };
        channel.taken += len;
        if channel.taken >= channel.credit_step {
            self.up
                .send(now, Piece::Credit(core::mem::take(&mut channel.taken)));
        }
    }

    /// Says whether the client has seen the end of the stream by `now`.
    #[must_use]
    pub fn client_at_end(&self, now: u64) -> bool {
        self.down.at_end(now) || self.up.is_cut()
    }

    /// Sends a piece from the server, as far as the channel window lets it.
    pub fn server_send(&mut self, now: u64, piece: Piece) {
        match &mut self.channel {
            Some(channel) => channel.held.push_back(piece),
            None => self.down.send(now, piece),
        }
        self.release(now);
    }

    /// Takes the next chunk that has reached the server by `now`. Credit on the way is booked.
    pub fn server_receive(&mut self, now: u64) -> Option<Piece> {
        loop {
            match self.up.receive(now)? {
                Piece::Credit(credit) => {
                    if let Some(channel) = &mut self.channel {
                        channel.credit += credit;
                    }
                    self.release(now);
                }
                piece @ (Piece::Bytes { .. } | Piece::Static(_)) => return Some(piece),
            }
        }
    }

    /// Says whether the server waits for credit with bytes in hand.
    #[must_use]
    pub fn server_is_blocked(&self) -> bool {
        self.channel
            .as_ref()
            .is_some_and(|channel| !channel.held.is_empty())
    }

    /// Says whether the server has seen the end of the stream by `now`.
    #[must_use]
    pub fn server_at_end(&self, now: u64) -> bool {
        self.up.at_end(now) || self.down.is_cut()
    }

    /// Returns the moment of the next arrival in either direction.
    #[must_use]
    pub fn next_arrival(&self) -> Option<u64> {
        [self.up.next_arrival(), self.down.next_arrival()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Stops both directions at `now` for `pause` nanoseconds.
    pub fn stall(&mut self, now: u64, pause: u64) {
        self.up.stall(now, pause);
        self.down.stall(now, pause);
    }

    /// Returns the bytes on their way to the client, held ones included.
    #[must_use]
    pub fn down_len(&self) -> usize {
        let held = self
            .channel
            .iter()
            .flat_map(|channel| &channel.held)
            .map(Piece::len);
        self.down.queued() + held.sum::<usize>()
    }

    fn release(&mut self, now: u64) {
        let Some(channel) = &mut self.channel else {
            return;
        };
        while let Some(piece) = channel.held.front_mut() {
            let len = usize::try_from(channel.credit)
                .unwrap_or(usize::MAX)
                .min(piece.len());
            if len == 0 && !piece.is_empty() {
                return;
            }
            channel.credit -= len as u64;
            self.down.send(now, piece.split_to(len));
            if channel.held.front().is_some_and(Piece::is_empty) {
                channel.held.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;

    #[test]
    fn channel_window_holds_the_server_until_credit_has_travelled() {
        let config = LinkConfig {
            channel_window: Some(1_000),
            credit_step: 63,
            ..LinkConfig::new(100, 0)
        };
        let mut link = Link::new(&config, &Rng::new(1));
        link.server_send(0, Piece::Static(&[7; 1_600]));
        assert!(link.server_is_blocked());
        assert_eq!(link.next_arrival(), Some(50 * MS));
        let first = link.client_receive(50 * MS).expect("the window's worth");
        assert_eq!(first.len(), 1_000);
        link.client_consumed(50 * MS, 62);
        assert_eq!(
            link.next_arrival(),
            None,
            "less than a step gives no credit yet"
        );
        link.client_consumed(50 * MS, 938);
        assert!(link.server_receive(99 * MS).is_none());
        assert!(link.server_is_blocked());
        assert!(
            link.server_receive(100 * MS).is_none(),
            "credit is not data"
        );
        assert!(!link.server_is_blocked());
        assert_eq!(
            link.client_receive(150 * MS).map(|piece| piece.len()),
            Some(600)
        );
    }

    #[test]
    fn a_full_send_buffer_takes_nothing_until_bytes_are_on_the_wire() {
        let config = LinkConfig {
            send_buffer: 1_000,
            ..LinkConfig::new(10, 8_000_000)
        };
        let mut link = Link::new(&config, &Rng::new(1));
        assert_eq!(link.client_room(0), 1_000);
        link.client_send(0, &[0; 1_000]);
        assert_eq!(link.client_room(0), 0);
        assert_eq!(link.client_room(MS / 2), 500, "a megabyte a second");
    }
}
