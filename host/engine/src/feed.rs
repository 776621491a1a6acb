//! Bytes that pass between a copy and somebody in the same process, who has a stream without a
//! descriptor: a body of a request, a plugin's own stream.
//!
//! The one who takes says first how much there is room for, and no more than that is put: nothing is
//! taken from anywhere before it has somewhere to go.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use rustix::io::Errno;

/// A passage in one direction. Clones are one and the same.
///
/// A copy stands at one end of it, as the [`Source`](crate::Source) or the
/// [`Destination`](crate::Destination); its caller at the other. Neither blocks: who cannot go on
/// leaves a [`Waker`], which is woken once.
#[derive(Clone, Default)]
pub struct Feed(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    taken: usize,
    /// How much who takes has room for.
    room: usize,
    /// No more comes, or it broke off.
    ended: Option<Result<(), Errno>>,
    /// Nobody takes any more.
    refused: Option<Errno>,
    /// What was taken is where it should be.
    is_settled: bool,
    putter: Option<Waker>,
    taker: Option<Waker>,
}

/// What came of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// So many bytes; 0 taken is the end.
    Bytes(usize),
    /// Not now; the waker that was left is woken.
    Later,
}

impl Feed {
    /// A new one, with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes may be put. [`Passed::Later`] until somebody has room.
    ///
    /// # Errors
    ///
    /// What the other end said when it went.
    pub fn room(&self, waker: &Waker) -> Result<Passed, Errno> {
        let mut state = self.lock();
        if let Some(errno) = state.refused {
            return Err(errno);
        }
        if state.room > 0 && state.is_empty() {
            return Ok(Passed::Bytes(state.room));
        }
        state.putter = Some(waker.clone());
        Ok(Passed::Later)
    }

    /// Puts as many of these as there is room for, and tells how many.
    ///
    /// # Errors
    ///
    /// What the other end said when it went.
    pub fn put(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let mut state = self.lock();
        if let Some(errno) = state.refused {
            return Err(errno);
        }
        if !state.is_empty() || bytes.is_empty() {
            return Ok(0);
        }
        let length = state.room.min(bytes.len());
        state.bytes.clear();
        state.bytes.extend_from_slice(&bytes[..length]);
        state.taken = 0;
        state.room = 0;
        wake(state.taker.take(), state);
        Ok(length)
    }

    /// Nothing comes any more: the end, or why it broke off.
    pub fn end(&self, why: Result<(), Errno>) {
        let mut state = self.lock();
        state.ended.get_or_insert(why);
        wake(state.taker.take(), state);
    }

    /// Takes bytes into a buffer, whose length is the room that there is for the next ones.
    ///
    /// # Errors
    ///
    /// Why the other end broke off.
    pub fn take(&self, buffer: &mut [u8], waker: &Waker) -> Result<Passed, Errno> {
        let mut state = self.lock();
        if !state.is_empty() {
            let rest = &state.bytes[state.taken..];
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            state.taken += length;
            return Ok(Passed::Bytes(length));
        }
        match state.ended {
            Some(Ok(())) => return Ok(Passed::Bytes(0)),
            Some(Err(errno)) => return Err(errno),
            None => {}
        }
        state.room = buffer.len();
        state.taker = Some(waker.clone());
        wake(state.putter.take(), state);
        Ok(Passed::Later)
    }

    /// Nothing is taken any more.
    pub fn refuse(&self, why: Errno) {
        let mut state = self.lock();
        state.refused.get_or_insert(why);
        wake(state.putter.take(), state);
    }

    /// All that was taken is where it should be, after [`take`](Self::take) has told of the end. A copy
    /// into a feed succeeds no sooner.
    pub fn settle(&self) {
        let mut state = self.lock();
        state.is_settled = true;
        wake(state.putter.take(), state);
    }

    /// Whether who takes has said that all is where it should be.
    ///
    /// # Errors
    ///
    /// What the other end said when it went.
    pub fn is_settled(&self, waker: &Waker) -> Result<bool, Errno> {
        let mut state = self.lock();
        if state.is_settled {
            return Ok(true);
        }
        if let Some(errno) = state.refused {
            return Err(errno);
        }
        state.putter = Some(waker.clone());
        Ok(false)
    }

    /// It breaks off, and what was put and not taken does not come any more: tells how much that is.
    pub(crate) fn revoke(&self, why: Errno) -> usize {
        let mut state = self.lock();
        let left = state.bytes.len() - state.taken;
        state.taken = state.bytes.len();
        state.ended.get_or_insert(Err(why));
        wake(state.taker.take(), state);
        left
    }

    /// What was put and not taken.
    pub fn left(&self) -> usize {
        let state = self.lock();
        state.bytes.len() - state.taken
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }
}

/// Wakes somebody once the lock is free.
fn wake(waker: Option<Waker>, state: MutexGuard<'_, State>) {
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Feed")
            .field("bytes", &(state.bytes.len() - state.taken))
            .field("room", &state.room)
            .field("ended", &state.ended)
            .field("refused", &state.refused)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn waker() -> (Arc<Count>, Waker) {
        let count = Arc::<Count>::default();
        (count.clone(), count.into())
    }

    #[test]
    fn nothing_is_put_before_there_is_room() {
        let feed = Feed::new();
        let (putter, puts) = waker();
        let (taker, takes) = waker();
        assert_eq!(feed.room(&puts), Ok(Passed::Later));
        assert_eq!(feed.put(b"early"), Ok(0));
        let mut buffer = [0; 4];
        assert_eq!(feed.take(&mut buffer, &takes), Ok(Passed::Later));
        assert_eq!(putter.0.load(Ordering::Relaxed), 1);
        assert_eq!(feed.room(&puts), Ok(Passed::Bytes(4)));
        assert_eq!(feed.put(b"enough"), Ok(4));
        assert_eq!(taker.0.load(Ordering::Relaxed), 1);
        // Room for the next is there when these are taken.
        assert_eq!(feed.put(b"more"), Ok(0));
        assert_eq!(feed.take(&mut buffer[..3], &takes), Ok(Passed::Bytes(3)));
        assert_eq!(feed.left(), 1);
        assert_eq!(feed.take(&mut buffer[3..], &takes), Ok(Passed::Bytes(1)));
        assert_eq!(&buffer, b"enou");
    }

    #[test]
    fn an_end_comes_after_the_bytes_and_stays() {
        let feed = Feed::new();
        let (_, waker) = waker();
        let mut buffer = [0; 4];
        assert_eq!(feed.take(&mut buffer, &waker), Ok(Passed::Later));
        feed.put(b"last").unwrap();
        feed.end(Ok(()));
        feed.end(Err(Errno::IO));
        assert_eq!(feed.take(&mut buffer, &waker), Ok(Passed::Bytes(4)));
        for _ in 0..2 {
            assert_eq!(feed.take(&mut buffer, &waker), Ok(Passed::Bytes(0)));
        }
        let broken = Feed::new();
        broken.end(Err(Errno::CONNRESET));
        assert_eq!(broken.take(&mut buffer, &waker), Err(Errno::CONNRESET));
        broken.refuse(Errno::PIPE);
        assert_eq!(broken.put(b"x"), Err(Errno::PIPE));
        assert_eq!(broken.room(&waker), Err(Errno::PIPE));
        assert_eq!(broken.is_settled(&waker), Err(Errno::PIPE));
    }

    #[test]
    fn what_was_not_taken_is_taken_back() {
        let feed = Feed::new();
        let (taker, waker) = waker();
        let mut buffer = [0; 4];
        assert_eq!(feed.take(&mut buffer, &waker), Ok(Passed::Later));
        assert_eq!(feed.put(b"some"), Ok(4));
        assert_eq!(feed.take(&mut buffer[..1], &waker), Ok(Passed::Bytes(1)));
        assert_eq!(feed.revoke(Errno::CANCELED), 3);
        assert_eq!(feed.revoke(Errno::IO), 0);
        assert_eq!(feed.take(&mut buffer, &waker), Err(Errno::CANCELED));
        assert_eq!(taker.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn who_puts_waits_for_all_to_be_where_it_should() {
        let feed = Feed::new();
        let (putter, waker) = waker();
        feed.end(Ok(()));
        assert_eq!(feed.is_settled(&waker), Ok(false));
        feed.settle();
        assert_eq!(putter.0.load(Ordering::Relaxed), 1);
        feed.refuse(Errno::PIPE);
        assert_eq!(feed.is_settled(&waker), Ok(true));
    }
}
