//! What the command says on the standard error, written by a thread of its own: whoever reads it may
//! be slow or gone, and neither a copy nor the timeout waits for that.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use crate::screen::Screen;

enum Message {
    Line(Vec<u8>),
    /// Tells that all before it is written.
    Flush(Sender<()>),
}

/// Says one line, whole even if others speak too.
pub(crate) fn say(line: Vec<u8>) {
    if let Some(writer) = writer()
        && let Err(mpsc::SendError(Message::Line(line))) = writer.send(Message::Line(line))
    {
        write(&line);
    }
}

/// One line from the command itself.
pub(crate) fn complain(message: Arguments<'_>) {
    say(format!("copyist: {message}\n").into_bytes());
}

/// Waits until all is written, but no longer than this.
pub(crate) fn flush(most: Duration) {
    let (done, written) = mpsc::channel();
    if let Some(writer) = writer()
        && writer.send(Message::Flush(done)).is_ok()
    {
        let _ = written.recv_timeout(most);
    }
}

/// The thread, started at the first word. `None` where there can be none, and nothing is said.
fn writer() -> Option<&'static Sender<Message>> {
    static WRITER: OnceLock<Option<Sender<Message>>> = OnceLock::new();
    WRITER
        .get_or_init(|| {
            let (sender, messages) = mpsc::channel();
            std::thread::Builder::new()
                .name("copyist-messages".to_owned())
                .spawn(move || write_all(&messages))
                .ok()
                .map(|_| sender)
        })
        .as_ref()
}

fn write_all(messages: &Receiver<Message>) {
    for message in messages {
        match message {
            Message::Line(line) => write(&line),
            Message::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}

fn write(line: &[u8]) {
    let write = || std::io::stderr().lock().write_all(line);
    // A reader that went away is no reason to fail.
    let _ = match Screen::shared() {
        Some(screen) => screen.write(line, write),
        None => write(),
    };
}
