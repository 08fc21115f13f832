//! A range on its way: its operation and its shelf, which come and go together.

use core::task::{Context, Poll};

use longhaul_core::OpError;
use longhaul_core::download::DownloadConfig;
use longhaul_core::driver::{File, Remote, Transfer};
use longhaul_core::engine::{OpId, Progress};

use super::io::Hub;
use super::shelf::{Piece, Shelves, Want};

/// A range of a file that is being fetched. Dropping it cancels that.
pub(super) struct Intake {
    /// `None` once it has ended, and while it is dropped.
    transfer: Option<Transfer<Hub>>,
    op: OpId,
    remote: Remote<Hub>,
    shelves: Shelves,
    /// How far it was when it ended.
    last: Progress,
}

impl Intake {
    pub(super) async fn begin(
        remote: Remote<Hub>,
        shelves: Shelves,
        file: &File<Hub>,
        config: DownloadConfig,
    ) -> Result<Self, OpError> {
        let transfer = file.download(config).await?;
        Ok(Self {
            op: transfer.op(),
            transfer: Some(transfer),
            remote,
            shelves,
            last: Progress::default(),
        })
    }

    /// How far it is. Bytes below `contiguous` were taken, or lie on the shelf.
    pub(super) fn progress(&self) -> Progress {
        let now = self.transfer.as_ref().and_then(Transfer::progress);
        now.unwrap_or(self.last)
    }

    /// Ready with its end once all of it has been delivered; not to be called again after that.
    pub(super) fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64, OpError>> {
        let Some(transfer) = &mut self.transfer else {
            return Poll::Ready(Err(OpError::Closed));
        };
        let progress = transfer.progress();
        let polled = transfer.poll_finished(cx);
        if polled.is_ready() {
            // Taking the end also takes the progress away. What came between the two is missing: that matters only for the
            // mark of a failed download, which may be too low.
            self.last = progress.unwrap_or(self.last);
            self.transfer = None;
        }
        polled
    }

    /// Ready once what is wanted lies on the shelf.
    pub(super) fn poll_shelf(&self, want: Want, cx: &Context<'_>) -> Poll<()> {
        self.shelves.poll(self.op, want, cx)
    }

    /// Takes a piece, the lowest first: a full one, or with `all` any.
    pub(super) fn take_piece(&self, all: bool) -> Option<Piece> {
        self.consume(self.shelves.take_piece(self.op, all))
    }

    /// Takes the piece that begins at `offset`.
    pub(super) fn take_at(&self, offset: u64) -> Option<Piece> {
        self.consume(self.shelves.take_at(self.op, offset))
    }

    fn consume(&self, taken: Option<(Piece, u64)>) -> Option<Piece> {
        let (piece, consumed) = taken?;
        if consumed > 0 {
            self.remote.consume(self.op, consumed);
        }
        Some(piece)
    }

    /// Offset of the lowest byte on the shelf.
    pub(super) fn lowest(&self) -> Option<u64> {
        self.shelves.lowest(self.op)
    }

    /// Gives a buffer back for the next piece.
    pub(super) fn recycle(&self, buffer: Vec<u8>) {
        self.shelves.recycle(self.op, buffer);
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        // First the operation: nothing is delivered for it after that.
        self.transfer = None;
        self.shelves.remove(self.op);
    }
}
