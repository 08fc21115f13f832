//! What travels on a link: bytes somebody made, bytes of the content table, or channel credit.

/// A run of bytes, or credit of the SSH channel, which takes no room in the stream.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes made for this run, from `start` on.
    Bytes {
        /// The bytes.
        data: Vec<u8>,
        /// How many of them have gone already.
        start: usize,
    },
    /// Bytes of the content table: never copied.
    Static(&'static [u8]),
    /// Credit of the SSH channel in bytes.
    Credit(u64),
}

impl From<Vec<u8>> for Piece {
    fn from(data: Vec<u8>) -> Self {
        Self::Bytes { data, start: 0 }
    }
}

impl From<&[u8]> for Piece {
    fn from(data: &[u8]) -> Self {
        data.to_vec().into()
    }
}

impl Piece {
    /// Returns the bytes; credit has none.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes { data, start } => &data[*start..],
            Self::Static(data) => data,
            Self::Credit(_) => &[],
        }
    }

    /// Returns the count of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Says whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the first `len` bytes off. Payload isn't copied; made bytes are, once.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn split_to(&mut self, len: usize) -> Self {
        if len == self.len() {
            return core::mem::replace(self, Self::Static(&[]));
        }
        match self {
            Self::Bytes { data, start } => {
                let first = data[*start..*start + len].to_vec();
                *start += len;
                first.into()
            }
            Self::Static(data) => {
                let (first, rest) = data.split_at(len);
                *data = rest;
                Self::Static(first)
            }
            Self::Credit(_) => unreachable!("credit has no bytes to split"),
        }
    }
}

/// Returns the bytes of all pieces as one run.
#[must_use]
pub fn flatten(pieces: &[Piece]) -> Vec<u8> {
    pieces
        .iter()
        .flat_map(|piece| piece.bytes().iter().copied())
        .collect()
}

/// Returns the count of bytes in all pieces.
#[must_use]
pub fn pieces_len(pieces: &[Piece]) -> usize {
    pieces.iter().map(Piece::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_keeps_every_byte_in_order() {
        for mut piece in [
            Piece::from(vec![1, 2, 3, 4, 5]),
            Piece::Static(&[1, 2, 3, 4, 5]),
        ] {
            let parts = [
                piece.split_to(2),
                piece.split_to(0),
                piece.split_to(3),
                piece,
            ];
            assert_eq!(parts.each_ref().map(Piece::len), [2, 0, 3, 0]);
            assert_eq!(flatten(&parts), [1, 2, 3, 4, 5]);
            assert_eq!(pieces_len(&parts), 5);
        }
    }

    #[test]
    fn payload_is_never_copied() {
        static DATA: [u8; 8] = [0; 8];
        let mut piece = Piece::Static(&DATA);
        let first = piece.split_to(3);
        assert_eq!(first.bytes().as_ptr(), DATA.as_ptr());
        assert_eq!(piece.bytes().as_ptr(), DATA[3..].as_ptr());
    }
}
