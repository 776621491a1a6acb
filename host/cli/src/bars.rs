//! Bars for the copies that last, for who sits at the terminal. They are drawn by a thread of their
//! own, so that neither a copy nor the guest waits for it.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use copyist_wasmtime::Started;
use copyist_wasmtime::engine::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::screen::Screen;

/// What ends sooner is not worth a bar.
const LASTS: Duration = Duration::from_secs(1);

/// How often they are drawn.
const TICK: Duration = Duration::from_millis(100);

/// As many as leave room for the guest on a small terminal.
const MOST: usize = 8;

enum Message {
    Copy(Copy),
    /// Clears all, and tells.
    End(Sender<()>),
}

static DRAWER: OnceLock<Sender<Message>> = OnceLock::new();

/// Whom to tell of each copy's start, where bars can be drawn.
pub(crate) fn start() -> Option<impl Fn(&Started<'_>) + Send + Sync + 'static> {
    let screen = Screen::take()?;
    let (sender, messages) = mpsc::channel();
    std::thread::Builder::new()
        .name("copyist-bars".to_owned())
        .spawn(move || draw_all(screen, &messages))
        .ok()?;
    let _ = DRAWER.set(sender.clone());
    Some(move |started: &Started<'_>| {
        let _ = sender.send(Message::Copy(Copy::new(started)));
    })
}

/// Clears them for good, but waits no longer than this for a terminal that is stopped.
pub(crate) fn end(most: Duration) {
    let (done, cleared) = mpsc::channel();
    if let Some(drawer) = DRAWER.get()
        && drawer.send(Message::End(done)).is_ok()
    {
        let _ = cleared.recv_timeout(most);
    }
}

fn draw_all(screen: &Screen, messages: &Receiver<Message>) {
    let mut copies: Vec<Copy> = Vec::new();
    loop {
        let message = if copies.is_empty() {
            messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            messages.recv_timeout(TICK)
        };
        match message {
            Ok(Message::Copy(copy)) => {
                copies.push(copy);
                continue;
            }
            Ok(Message::End(done)) => {
                screen.clear();
                let _ = done.send(());
                return;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        tick(screen, &mut copies);
    }
}

fn tick(screen: &Screen, copies: &mut Vec<Copy>) {
    let ended: Vec<_> = copies
        .extract_if(.., |copy| copy.progress.has_ended())
        .filter_map(|copy| copy.bar)
        .collect();
    let mut room = MOST.saturating_sub(copies.iter().filter(|copy| copy.bar.is_some()).count());
    screen.draw(|bars| {
        for bar in &ended {
            bar.finish_and_clear();
        }
        for copy in &mut *copies {
            if copy.bar.is_none() && room > 0 && copy.since.elapsed() >= LASTS {
                room -= 1;
                copy.bar = Some(bars.add(copy.begin()));
            }
            copy.draw();
        }
    });
    for bar in &ended {
        screen.forget(bar);
    }
}

/// A copy under way.
struct Copy {
    name: String,
    progress: Progress,
    since: Instant,
    bar: Option<ProgressBar>,
}

impl Copy {
    fn new(started: &Started<'_>) -> Self {
        Self {
            name: format!("{} → {}", name(started.source), name(started.destination)),
            progress: started.progress.clone(),
            since: Instant::now(),
            bar: None,
        }
    }

    /// Its bar, with nothing drawn yet.
    fn begin(&self) -> ProgressBar {
        ProgressBar::no_length()
            .with_elapsed(self.since.elapsed())
            .with_message(self.name.clone())
            .with_style(style(false))
    }

    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        let total = self.progress.total();
        if bar.length() != total {
            match total {
                Some(total) => bar.set_length(total),
                None => bar.unset_length(),
            }
            bar.set_style(style(total.is_some()));
        }
        bar.set_position(self.progress.bytes());
        bar.tick();
    }
}

/// With a total there is a bar to fill.
fn style(has_total: bool) -> ProgressStyle {
    let template = if has_total {
        "{wide_msg} [{bar:20}] {bytes}/{total_bytes} {bytes_per_sec}"
    } else {
        "{wide_msg} {spinner} {bytes} {bytes_per_sec}"
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
        .tick_chars("|/-\\|")
}

/// The guest's own path. What it has in it must not move the cursor.
fn name(path: Option<&Path>) -> String {
    let Some(path) = path else {
        return "an open file".to_owned();
    };
    let plain = |letter: char| {
        if letter.is_control() {
            char::REPLACEMENT_CHARACTER
        } else {
            letter
        }
    };
    path.to_string_lossy().chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_sound() {
        for template in [true, false].map(style) {
            // The default one has no message.
            let bar = ProgressBar::hidden().with_style(template);
            bar.tick();
        }
    }

    #[test]
    fn a_name_moves_no_cursor() {
        assert_eq!(
            name(Some(Path::new("a\x1b[2J\n\u{9b}b é"))),
            "a\u{fffd}[2J\u{fffd}\u{fffd}b é"
        );
        assert_eq!(name(None), "an open file");
    }
}
