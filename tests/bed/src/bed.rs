//! A bed: how it comes, what a test says to it, how it goes.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fuser::{Config, Session, SessionACL};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::faults::{Call, Rule};
use crate::kernel;
use crate::places::skipped;
use crate::server::{Late, Server, Shared, answer_late};
use crate::store::{Content, Node, ROOT, Store};

/// How long a test waits for something that always comes before it says that it did not.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file system in memory that misbehaves where it is told to.
///
/// No mount table shows it: its root is a descriptor, and [`path`](Self::path) a name of that.
/// With the last descriptor it is gone, whatever became of the process.
///
/// The threads that serve it have a table of descriptors of their own, and they alone have the
/// connection to the kernel. So when a process ends, by a panic, by a signal or as it should, the
/// connection ends first, and nobody waits for an answer that cannot come: not the calls that
/// were left hanging, nor those that close what the process has open here. A process with a bed
/// makes no core dump, which would wait for them.
#[derive(Debug)]
pub struct Bed {
    root: OwnedFd,
    shared: Arc<Shared>,
    late: Sender<Late>,
}

impl Bed {
    /// An empty one, with a directory that everybody can read. Says aloud why there is none where
    /// the process may not mount.
    pub fn mount() -> Option<Self> {
        match Self::try_mount() {
            Ok(bed) => Some(bed),
            Err(error) => {
                skipped(&format!("no file system in user space: {error}"));
                None
            }
        }
    }

    /// The same.
    ///
    /// # Errors
    ///
    /// What the kernel says where it has no FUSE, or the process no right to mount.
    pub fn try_mount() -> io::Result<Self> {
        let owner = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        let shared = Arc::new(Shared {
            store: Mutex::new(Store::new(owner)),
            waits: Condvar::new(),
        });
        let (late, hanging) = mpsc::channel();
        let server = Server {
            shared: shared.clone(),
            late: late.clone(),
        };
        let (mounted, wait_for_mount) = mpsc::sync_channel(0);
        let (taken, wait_for_taken) = mpsc::sync_channel(0);
        thread::Builder::new()
            .name("bed".to_owned())
            .spawn(move || {
                let (session, root) = match connect(server, owner) {
                    Ok(connected) => connected,
                    Err(error) => return drop(mounted.send(Err(error))),
                };
                let answers = thread::Builder::new()
                    .name("bed-late".to_owned())
                    .spawn(move || answer_late(&hanging));
                let name = answers.and_then(|_| name_of(&root));
                if mounted.send(name).is_ok() && wait_for_taken.recv().is_ok() {
                    drop(root);
                    // It ends with the last descriptor of the test, or with the process, and has
                    // nobody to tell how.
                    let _ = session.run();
                }
            })?;
        let name = wait_for_mount.recv().map_err(io::Error::other)??;
        // As wasmtime opens its preopens; and it asks nothing of the server.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&name, flags, Mode::empty())?;
        taken.send(()).map_err(io::Error::other)?;
        Ok(Self { root, shared, late })
    }

    /// A name of its root, good in this process and its children while the bed is there.
    pub fn path(&self) -> PathBuf {
        let process = std::process::id();
        format!("/proc/{process}/fd/{}", self.root.as_raw_fd()).into()
    }

    /// Its root, opened as wasmtime opens its preopens (`O_PATH`).
    ///
    /// # Panics
    ///
    /// Where no more descriptors are to be had.
    pub fn root(&self) -> File {
        self.root
            .try_clone()
            .expect("a test's process has room for a descriptor")
            .into()
    }

    /// Makes a file that obeys these rules, in place of what has its name.
    ///
    /// # Panics
    ///
    /// If the name is a path, or that of a directory that is not empty.
    pub fn add(&self, name: &str, rules: &[Rule], content: impl Into<Vec<u8>>) {
        assert!(!name.contains('/'), "{name}: the root alone is meant");
        let name = name.as_ref();
        let mut store = self.shared.lock();
        let owner = store
            .node(ROOT)
            .map_or((0, 0), |root| (root.owner, root.group));
        let _ = store.unlink(ROOT, name);
        let expected = store.expected.insert(name.to_owned(), rules.to_vec());
        let node = Node::new(Content::File(content.into()), 0o644, owner);
        store
            .add(ROOT, name, node)
            .expect("its name is free and it may be made");
        match expected {
            Some(expected) => store.expected.insert(name.to_owned(), expected),
            None => store.expected.remove(name),
        };
    }

    /// A file that is made with this name will obey these rules.
    pub fn expect(&self, name: &str, rules: &[Rule]) {
        self.shared
            .lock()
            .expected
            .insert(name.into(), rules.to_vec());
    }

    /// Every file that is made with a name that was not [expected](Self::expect) will obey these
    /// rules: the temporary ones of a copier, say.
    pub fn expect_any(&self, rules: &[Rule]) {
        self.shared.lock().fresh = rules.to_vec();
    }

    /// From now on a file that is there obeys these rules.
    ///
    /// # Panics
    ///
    /// If it is not there.
    pub fn obey(&self, name: &str, rules: &[Rule]) {
        self.with(name, |node| node.obey(rules));
    }

    /// What a file holds, whatever it says.
    ///
    /// # Panics
    ///
    /// If it is not there, or no file.
    pub fn content(&self, name: &str) -> Vec<u8> {
        self.with(name, |node| node.bytes().cloned())
            .expect("it is a file")
    }

    /// What its directory holds, sorted.
    pub fn names(&self) -> Vec<String> {
        match self.shared.lock().node(ROOT).map(|root| &root.content) {
            Ok(Content::Directory(names)) => names
                .keys()
                .map(|name| name.to_string_lossy().into_owned())
                .collect(),
            _ => Vec::new(),
        }
    }

    /// How often a call was made, of any file.
    pub fn calls(&self, call: Call) -> u64 {
        self.shared.lock().calls.get(&call).copied().unwrap_or(0)
    }

    /// How many calls were made at all.
    pub fn all_calls(&self) -> u64 {
        self.shared.lock().calls.values().sum()
    }

    /// How often a call was made of the file that has this name now.
    ///
    /// # Panics
    ///
    /// If it is not there.
    pub fn calls_of(&self, name: &str, call: Call) -> u64 {
        self.with(name, |node| node.calls.get(&call).copied().unwrap_or(0))
    }

    /// Waits until a call of this file hangs.
    ///
    /// # Panics
    ///
    /// If it is not there, or none hangs after a minute.
    pub fn wait_for_hang(&self, name: &str) {
        let store = self.shared.lock();
        let none_hangs = |store: &mut Store| {
            let inode = store.find(ROOT, name.as_ref());
            inode
                .and_then(|inode| Ok(store.node(inode)?.waiting))
                .unwrap_or(0)
                == 0
        };
        let (store, waited) = self
            .shared
            .waits
            .wait_timeout_while(store, PATIENCE, none_hangs)
            .unwrap_or_else(PoisonError::into_inner);
        drop(store);
        assert!(!waited.timed_out(), "no call of {name} hangs");
    }

    /// How many calls of this file hang.
    ///
    /// # Panics
    ///
    /// If it is not there.
    pub fn hanging(&self, name: &str) -> usize {
        self.with(name, |node| node.waiting)
    }

    /// Answers the calls of this file that hang, and lets none hang from now on.
    ///
    /// # Panics
    ///
    /// If it is not there.
    pub fn release(&self, name: &str) {
        let mut store = self.shared.lock();
        let inode = store.find(ROOT, name.as_ref());
        let inode = inode.unwrap_or_else(|_| panic!("{name} is not there"));
        if let Ok(node) = store.node(inode) {
            node.released = true;
            node.waiting = 0;
        }
        // Where nobody hears it, nothing hangs.
        let _ = self.late.send(Late::Release(inode));
    }

    #[track_caller]
    fn with<T>(&self, name: &str, work: impl FnOnce(&mut Node) -> T) -> T {
        let mut store = self.shared.lock();
        let node = store
            .find(ROOT, name.as_ref())
            .and_then(|inode| store.node(inode));
        match node {
            Ok(node) => work(node),
            Err(Errno::NOENT) => panic!("{name} is not there"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

impl AsFd for Bed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

impl Drop for Bed {
    /// What still hangs is answered, and what is still open here keeps the file system alive.
    fn drop(&mut self) {
        let mut store = self.shared.lock();
        store.released = true;
        store.nodes().for_each(|node| node.waiting = 0);
        let _ = self.late.send(Late::ReleaseAll);
    }
}

/// Connects to the kernel and mounts. The first code of the server's thread.
fn connect(server: Server, (user, group): (u32, u32)) -> io::Result<(Session<Server>, OwnedFd)> {
    kernel::leave_descriptors()?;
    kernel::make_no_core_dump()?;
    let device = File::options().read(true).write(true).open("/dev/fuse")?;
    let root = kernel::mount(
        c"fuse",
        &[
            ("source", "bed"),
            ("subtype", "bed"),
            ("fd", &device.as_raw_fd().to_string()),
            ("rootmode", "40000"),
            ("user_id", &user.to_string()),
            ("group_id", &group.to_string()),
            ("default_permissions", ""),
            ("allow_other", ""),
        ],
    )?;
    let session = Session::from_fd(server, device.into(), SessionACL::All, Config::default())?;
    Ok((session, root))
}

/// What other threads of the process call a descriptor of this one.
fn name_of(descriptor: &OwnedFd) -> io::Result<PathBuf> {
    let thread = fs::read_link("/proc/thread-self")?;
    let descriptor = descriptor.as_raw_fd().to_string();
    Ok(Path::new("/proc").join(thread).join("fd").join(descriptor))
}
