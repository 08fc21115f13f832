//! The file that the demo serves.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;

use sha2::{Digest as _, Sha256};

/// SHA-256.
pub(super) type Sum = [u8; 32];

const NAME: &str = "sample.bin";
const PIECE_LEN: usize = 1 << 20;

/// A temporary folder with one file, removed when dropped.
#[derive(Debug)]
pub(super) struct Sample {
    folder: PathBuf,
    sums: Vec<Sum>,
}

impl Sample {
    /// Makes a file as long as the last of `lens`, which rise by whole MiB, and takes the sum up to each.
    pub(super) fn new(lens: &[u64]) -> io::Result<Self> {
        let folder = env::temp_dir().join(format!("longhaul-demo-{}", process::id()));
        fs::create_dir(&folder)?;
        // From here on it is removed, whatever happens.
        let mut sample = Self {
            folder,
            sums: Vec::new(),
        };
        let mut file = File::create_new(sample.folder.join(NAME))?;
        let mut hash = Sha256::new();
        let (mut written, mut random) = (0, 0x9e37_79b9_7f4a_7c15_u64);
        let mut piece = vec![0; PIECE_LEN];
        for &len in lens {
            while written < len {
                for word in piece.chunks_exact_mut(8) {
                    // xorshift64: no part of the file is like another.
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    word.copy_from_slice(&random.to_le_bytes());
                }
                file.write_all(&piece)?;
                hash.update(&piece);
                written += piece.len() as u64;
            }
            sample.sums.push(hash.clone().finalize().into());
        }
        Ok(sample)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn name(&self) -> &'static str {
        NAME
    }

    /// The sum up to the length of that index.
    pub(super) fn sum(&self, index: usize) -> Option<Sum> {
        self.sums.get(index).copied()
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
