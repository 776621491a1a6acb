//! The terminal, where the bars are drawn below what the guest writes: never both at a time, and the
//! bars only while the cursor stands in an empty line.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use indicatif::{MultiProgress, ProgressDrawTarget};
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// The terminal of the process.
pub(crate) struct Screen {
    state: Mutex<State>,
    bars: MultiProgress,
}

#[derive(Default)]
struct State {
    /// The guest's last line has no end yet.
    is_in_line: bool,
    /// The guest moves the cursor by itself, and has the terminal for itself.
    is_taken: bool,
    /// There may be bars to be cleared.
    is_drawn: bool,
}

static SCREEN: OnceLock<Screen> = OnceLock::new();

impl Screen {
    /// The one that the bars are drawn on. Absent until [`take`](Self::take).
    pub(crate) fn shared() -> Option<&'static Self> {
        SCREEN.get()
    }

    /// Where the standard error is a terminal on which a cursor can be moved.
    pub(crate) fn take() -> Option<&'static Self> {
        let terminal = std::env::var_os("TERM");
        let can_move = terminal.is_some_and(|name| !name.is_empty() && name != "dumb");
        if !can_move || !io::stderr().is_terminal() {
            return None;
        }
        Some(SCREEN.get_or_init(|| Self {
            state: Mutex::default(),
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
        }))
    }

    /// Draws, where the bars may be seen now.
    pub(crate) fn draw(&self, draw: impl FnOnce(&MultiProgress)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_in_line && !state.is_taken {
            state.is_drawn = true;
            draw(&self.bars);
        }
    }

    /// Takes a bar away that is not to be seen any more.
    pub(crate) fn forget(&self, bar: &indicatif::ProgressBar) {
        self.bars.remove(bar);
    }

    /// Clears all.
    pub(crate) fn clear(&self) {
        self.write(&[], || {});
    }

    /// Writes these bytes by this function, the bars out of the way. They come back by themselves.
    pub(crate) fn write<T>(&self, bytes: &[u8], write: impl FnOnce() -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.is_drawn) {
            let _ = self.bars.clear();
        }
        if let Some(last) = bytes.last() {
            state.is_in_line = *last != b'\n';
            state.is_taken |= !is_plain(bytes);
        }
        write()
    }
}

/// Whether this is text, in colours perhaps. A sequence that does not end here is taken for more
/// than a colour.
fn is_plain(bytes: &[u8]) -> bool {
    const ESCAPE: u8 = 0x1b;
    let is_colour = |rest: &[u8]| {
        let parameters = rest.strip_prefix(b"[").unwrap_or_default();
        let end = parameters
            .iter()
            .find(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'));
        end == Some(&b'm')
    };
    let mut parts = bytes.split(|byte| *byte == ESCAPE);
    parts.next();
    parts.all(is_colour)
}

/// The guest's standard output or error, where that is the terminal which the bars are drawn on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GuestStream {
    Output,
    Errors,
}

impl GuestStream {
    fn write_all(self, bytes: &[u8]) -> io::Result<()> {
        fn whole(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
            stream.write_all(bytes)?;
            // Where a line ends is seen on the terminal, not in a buffer.
            stream.flush()
        }
        let write = || match self {
            Self::Output => whole(io::stdout().lock(), bytes),
            Self::Errors => whole(io::stderr().lock(), bytes),
        };
        match Screen::shared() {
            Some(screen) => screen.write(bytes, write),
            None => write(),
        }
    }
}

impl IsTerminal for GuestStream {
    fn is_terminal(&self) -> bool {
        true
    }
}

impl StdoutStream for GuestStream {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(*self)
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(*self)
    }
}

impl OutputStream for GuestStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.write_all(&bytes).map_err(|error| {
            if error.kind() == io::ErrorKind::BrokenPipe {
                StreamError::Closed
            } else {
                StreamError::LastOperationFailed(error.into())
            }
        })
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

#[async_trait]
impl Pollable for GuestStream {
    async fn ready(&mut self) {}
}

impl AsyncWrite for GuestStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.write_all(bytes).map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_text_and_a_moved_cursor_is_not() {
        for plain in ["", "text\n", "\x1b[1;31mred\x1b[0m\n", "\x1b[mall"] {
            assert!(is_plain(plain.as_bytes()), "{plain:?}");
        }
        for other in [
            "\x1b[2J",
            "\x1b[H",
            "\x1b[?25l",
            "\x1b7",
            "red \x1b[31m and up \x1b[A",
            "cut \x1b[3",
            "\x1b",
        ] {
            assert!(!is_plain(other.as_bytes()), "{other:?}");
        }
    }
}
