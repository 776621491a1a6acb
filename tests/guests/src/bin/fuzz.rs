//! What nobody means, at random: numbers, paths, handles, options and calls of a seed's choice, one
//! after the other; and a plain copy at the end, which must succeed.
//!
//! `fuzz DIRECTORY --seed=N --calls=N`, the name of a granted directory that may be written and holds
//! a file `plain`; another that is granted may be read from. It checks what can be checked without
//! knowing what should come of a call, and prints the line of the plain copy. With `--forge` it ends
//! by naming a handle that it does not have, for which there is no answer but a trap.

use std::mem::ManuallyDrop;

use copyist_test_guests::contract::types::{
    Cause, Destination, Durability, Existing, Failure, HeldDestination, HeldSource, Location,
    Options, Preserve, Reflink, Source, Sparse, Special, Summary, Symlinks, Window, WriteMode,
};
use copyist_test_guests::contract::{copy, endpoints, jobs, read};
use copyist_test_guests::{Arguments, open, say};
use wasip2::cli::stdin::get_stdin;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, OpenFlags, PathFlags};
use wasip2::io::streams::{InputStream, OutputStream};

/// As many as a guest holds at once.
const MOST_HELD: usize = 2000;
const MOST_DESCRIPTORS: usize = 24;
const MOST_JOBS: usize = 6;
/// For what has to wait for a peer that never comes, in nanoseconds.
const SHORT: u64 = 300_000;

fn main() {
    let mut arguments = Arguments::from_env();
    let seed = arguments.number("seed").expect("--seed is given");
    let calls = arguments.number("calls").expect("--calls is given");
    let forge = arguments.flag("forge");
    let [directory] = arguments.paths();
    let granted = get_directories();
    let mut fuzz = Fuzz {
        random: Random(seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15) | 1),
        directories: granted.into_iter().map(|(dir, _)| dir).collect(),
        descriptors: Vec::new(),
        options: Vec::new(),
        jobs: Vec::new(),
        copied: 0,
        read: 0,
    };
    for _ in 0..calls {
        fuzz.act();
    }
    let Fuzz { copied, read, .. } = fuzz;
    let rights = DescriptorFlags::MUTATE_DIRECTORY;
    let dir = open(&directory, OpenFlags::DIRECTORY, rights).expect("it opens still");
    let _ = dir.unlink_file_at("last");
    let plain = copy::transfer(
        &Source::Path(at(&dir, "plain".into(), false)),
        &Destination::Path(at(&dir, "last".into(), false)),
        None,
    );
    match plain {
        Ok(Summary { bytes, .. }) => {
            say(format_args!("ok bytes={bytes} copied={copied} read={read}"));
        }
        Err(failure) => panic!("it copies no more: {failure:?}"),
    }
    if forge {
        forged(&dir);
    }
}

/// Names one kind of handle as another.
#[expect(unsafe_code, reason = "it is what no author can write without")]
fn forged(dir: &Descriptor) {
    // SAFETY: whoever forges a handle is ended by the host; no memory is at stake.
    let options = unsafe { Options::from_handle(dir.handle()) };
    let _ = ManuallyDrop::new(options).window();
}

/// xorshift64*
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below this one.
    fn below(&mut self, most: usize) -> usize {
        let most = u64::try_from(most).expect("a small number");
        usize::try_from((self.next() >> 33) % most).expect("it is smaller")
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn number(&mut self) -> u64 {
        const LAST: u64 = i64::MAX.cast_unsigned();
        match self.below(6) {
            0 => self.one(&[0, 1, 4096, 65_536]),
            1 => self.one(&[
                LAST - 4096,
                LAST - 1,
                LAST,
                LAST + 1,
                u64::MAX - 1,
                u64::MAX,
            ]),
            2 => self.next(),
            3 => self.next() >> self.below(64),
            _ => self.next() % 200_000,
        }
    }

    fn maybe_number(&mut self) -> Option<u64> {
        (!self.one_in(3)).then(|| self.number())
    }
}

/// Which descriptor, and the path beneath it, with its last link followed or not.
type End = (usize, String, bool);

struct Fuzz {
    random: Random,
    directories: Vec<Descriptor>,
    descriptors: Vec<Descriptor>,
    options: Vec<Options>,
    jobs: Vec<jobs::Job>,
    /// Copies that moved something.
    copied: u64,
    /// Reads that had something to read.
    read: u64,
}

impl Fuzz {
    /// Does one thing.
    fn act(&mut self) {
        match self.random.below(32) {
            0 => self.hold_options(),
            1 => self.set_and_get(),
            2..=4 => self.open(),
            5 => self.close(),
            6 => self.rearrange(),
            7..=12 => self.read(),
            13 | 14 => self.start(),
            15 => self.look_at_jobs(),
            16 => self.open_endpoint(),
            17 | 18 => self.tree(),
            _ => self.copy(),
        }
    }

    fn path(&mut self) -> String {
        const PARTS: [&str; 22] = [
            "plain",
            "a",
            "b",
            "sub",
            "sub/c",
            "new",
            "link",
            "out",
            "up",
            "loop",
            "fifo",
            "socket",
            "hole",
            ".",
            "..",
            "",
            "/",
            "\0",
            "\n",
            "ä",
            "\u{FEFF}",
            ".copyist-0123456789abcdef",
        ];
        // What is there, or could be, so that not all is refused.
        const NAMES: [&str; 8] = ["plain", "a", "b", "link", "hole", "new", "sub/c", "sub/new"];
        let random = &mut self.random;
        if random.one_in(2) {
            return random.one(&NAMES).to_owned();
        }
        match random.below(24) {
            0 => return "x".repeat(random.below(70_000)),
            1 => return "./".repeat(random.below(3000)) + "a",
            2 => return "../".repeat(random.below(40)) + "etc/passwd",
            _ => {}
        }
        let mut path = random.one(&PARTS).to_owned();
        while random.one_in(4) {
            path.push_str(random.one(&["/", "/", "//", "/./", ""]));
            path.push_str(random.one(&PARTS));
        }
        path
    }

    fn preserve(&mut self) -> Preserve {
        let bits = u8::try_from(self.random.below(256)).expect("a byte");
        if self.random.one_in(2) {
            return Preserve::empty();
        }
        Preserve::from_bits_truncate(bits)
    }

    fn window(&mut self) -> Option<Window> {
        let random = &mut self.random;
        (!random.one_in(3)).then(|| Window {
            source_offset: random.number(),
            length: random.maybe_number(),
            destination_offset: if random.one_in(2) { 0 } else { random.number() },
        })
    }

    fn set(&mut self, options: &Options) {
        use Existing::{Refuse, Skip, Update, Write};
        let times = self.random.one(&[0, 0, 1, 2, 6]);
        for _ in 0..times {
            match self.random.below(8) {
                0 => {
                    let value = self.random.one(&[Refuse, Skip, Update, Write]);
                    options.set_existing(value);
                    assert_eq!(options.existing(), value);
                }
                1 => {
                    let value = self.random.one(&[WriteMode::InPlace, WriteMode::Replace]);
                    options.set_write_mode(value);
                    assert_eq!(options.write_mode(), value);
                }
                2 => {
                    let all = [
                        Reflink::Auto,
                        Reflink::Auto,
                        Reflink::Always,
                        Reflink::Never,
                    ];
                    let value = self.random.one(&all);
                    options.set_reflink(value);
                    assert_eq!(options.reflink(), value);
                }
                3 => {
                    let value = self
                        .random
                        .one(&[Sparse::Auto, Sparse::Always, Sparse::Never]);
                    options.set_sparse(value);
                    assert_eq!(options.sparse(), value);
                }
                4 => {
                    // On a disk a sync takes milliseconds.
                    let value = self.random.one(&[Durability::None, Durability::Each]);
                    options.set_durability(value);
                    assert_eq!(options.durability(), value);
                    options.set_durability(Durability::None);
                }
                5 => {
                    let value = self.preserve();
                    options.set_preserve(value);
                    assert_eq!(options.preserve(), value);
                }
                6 => {
                    let value = self.preserve();
                    options.set_require(value);
                    assert_eq!(options.require(), value);
                }
                _ => {
                    let value = self.window();
                    options.set_window(value);
                    assert_eq!(options.window(), value);
                }
            }
        }
    }

    /// Takes one that is held, or a new one, or none.
    fn take_options(&mut self) -> Option<Options> {
        if self.random.one_in(4) {
            return None;
        }
        let held = self.options.len();
        let options = if held > 0 && self.random.one_in(3) {
            let which = self.random.below(held);
            self.options.swap_remove(which)
        } else {
            Options::new()
        };
        self.set(&options);
        Some(options)
    }

    fn give_back(&mut self, options: Option<Options>) {
        if self.options.len() < MOST_HELD {
            self.options.extend(options);
        }
    }

    fn hold_options(&mut self) {
        if self.random.one_in(3) {
            self.options.clear();
        }
        let more = self.random.below(MOST_HELD);
        let room = MOST_HELD - self.options.len();
        self.options
            .extend((0..more.min(room)).map(|_| Options::new()));
    }

    fn set_and_get(&mut self) {
        if let Some(options) = self.take_options() {
            for _ in 0..20 {
                self.set(&options);
            }
            self.give_back(Some(options));
        }
    }

    fn open(&mut self) {
        let path = self.path();
        let follow = if self.random.one_in(2) {
            PathFlags::SYMLINK_FOLLOW
        } else {
            PathFlags::empty()
        };
        let how = self.random.one(&[
            OpenFlags::empty(),
            OpenFlags::empty(),
            OpenFlags::DIRECTORY,
            OpenFlags::CREATE,
        ]);
        let rights = self.random.one(&[
            DescriptorFlags::READ,
            DescriptorFlags::WRITE,
            DescriptorFlags::READ | DescriptorFlags::WRITE,
            DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY,
            DescriptorFlags::empty(),
        ]);
        // To open a FIFO is wasmtime's own affair, which waits for a peer.
        if touches_what_stays(&path) {
            return;
        }
        let opened = self.any_directory().open_at(follow, &path, how, rights);
        if self.descriptors.len() < MOST_DESCRIPTORS {
            self.descriptors.extend(opened.ok());
        }
    }

    fn close(&mut self) {
        while !self.descriptors.is_empty() && !self.random.one_in(3) {
            let which = self.random.below(self.descriptors.len());
            drop(self.descriptors.swap_remove(which));
        }
    }

    /// Changes the tree, as a guest may.
    fn rearrange(&mut self) {
        let (one, other) = (self.path(), self.path());
        let which = self.random.below(4);
        let dir = self.any_directory();
        if touches_what_stays(&one) || touches_what_stays(&other) {
            return;
        }
        let _ = match which {
            0 => dir.unlink_file_at(&one),
            1 => dir.create_directory_at(&one),
            2 => dir.symlink_at(&one, &other),
            _ => dir.rename_at(&one, dir, &other),
        };
    }

    fn any_directory(&mut self) -> &Descriptor {
        let which = self.random.below(self.directories.len());
        &self.directories[which]
    }

    /// A descriptor of whatever kind.
    fn any(&self, which: usize) -> &Descriptor {
        let all = self.directories.len() + self.descriptors.len();
        let which = which % all;
        self.descriptors
            .get(which)
            .unwrap_or_else(|| &self.directories[which - self.descriptors.len()])
    }

    fn location(&mut self) -> End {
        let path = self.path();
        // Mostly the one that may be written.
        let which = match self.random.below(12) {
            0 => self.random.below(1000),
            1 => self.descriptors.len() + self.random.below(self.directories.len()),
            _ => self.descriptors.len(),
        };
        (which, path, self.random.one_in(2))
    }

    /// Two ends and options. What may be a FIFO has a time.
    fn ends(&mut self) -> Option<(End, End, Option<Options>)> {
        let (from, to) = (self.location(), self.location());
        if to.1.contains("plain") {
            return None;
        }
        let mut options = self.take_options();
        if from.1.contains("fifo") || to.1.contains("fifo") {
            let options = options.get_or_insert_with(Options::new);
            options.set_timeout(Some(SHORT));
            assert_eq!(options.timeout(), Some(SHORT));
        }
        Some((from, to, options))
    }

    fn copy(&mut self) {
        let Some((from, to, options)) = self.ends() else {
            return;
        };
        let kinds = [self.random.below(12), self.random.below(12)];
        let (input, output) = (self.input(from.0), self.output(to.0));
        let source = match (kinds[0], &input) {
            (0 | 1, _) => Source::File(self.any(from.0)),
            (2, Some(input)) => Source::Input(input),
            _ => Source::Path(at(self.any(from.0), from.1.clone(), from.2)),
        };
        let destination = match (kinds[1], &output) {
            (0 | 1, _) => Destination::File(self.any(to.0)),
            (2, Some(output)) => Destination::Output(output),
            _ => Destination::Path(at(self.any(to.0), to.1.clone(), to.2)),
        };
        let copied = match copy::transfer(&source, &destination, options.as_ref()) {
            Ok(done) => copied(&done),
            Err(failure) => {
                failed(&failure, &[&from.1, &to.1]);
                0
            }
        };
        self.copied += copied;
        self.give_back(options);
    }

    /// Trees of whatever there is, into trees of their own.
    fn tree(&mut self) {
        const TO: [&str; 10] = [
            "tree",
            "tree",
            "tree/sub",
            "tree/..//trees",
            "sub/tree",
            "up/tree",
            "out/tree",
            "loop/tree",
            "",
            "a",
        ];
        const PATTERNS: [&str; 6] = ["*", "!*", "**/**", "a{b", "", "/plain/"];
        let Some((from, mut to, options)) = self.ends() else {
            return;
        };
        to.1 = self.random.one(&TO).to_owned();
        let options = options.unwrap_or_else(Options::new);
        options.set_symlinks(
            self.random
                .one(&[Symlinks::Keep, Symlinks::Follow, Symlinks::Skip]),
        );
        options.set_special(
            self.random
                .one(&[Special::Refuse, Special::Skip, Special::Keep]),
        );
        options.set_one_file_system(self.random.one_in(2));
        options.set_keep_going(self.random.one_in(2));
        let many = self.random.one(&[0, 0, 0, 1, 3, 300]);
        let patterns: Vec<_> = (0..many)
            .map(|_| self.random.one(&PATTERNS).to_owned())
            .collect();
        options.set_exclude(&patterns);
        assert_eq!(options.exclude(), patterns);
        let (is_job, waits) = (self.random.one_in(3), self.random.one_in(2));
        let offset = self.random.number();
        let (source, destination) = (
            at(self.any(from.0), from.1.clone(), from.2),
            at(self.any(to.0), to.1, to.2),
        );
        if is_job {
            if let Ok(job) = copy::start_tree(&source, &destination, Some(&options)) {
                let _ = job.failures(0, u32::MAX);
                if waits {
                    job.subscribe().block();
                    let _ = job.skipped(offset, 5);
                    assert!(job.outcome().is_some(), "it is ready and has not ended");
                }
            }
        } else {
            let done = match copy::tree(&source, &destination, Some(&options)) {
                Ok(done) => done,
                Err(failure) => failure.done,
            };
            assert!(done.bytes <= done.consumed, "{done:?}");
            assert!(done.shared <= done.bytes, "{done:?}");
        }
        options.set_exclude(&[]);
        self.give_back(Some(options));
    }

    /// As a copy, and nobody waits for it.
    fn start(&mut self) {
        let Some((from, to, options)) = self.ends() else {
            return;
        };
        let kinds = [self.random.below(12), self.random.below(12)];
        let (input, output) = (self.input(from.0), self.output(to.0));
        let source = match (kinds[0], input) {
            (0 | 1, _) => HeldSource::File(self.any(from.0)),
            (2, Some(input)) => HeldSource::Input(input),
            _ => HeldSource::Path(at(self.any(from.0), from.1.clone(), from.2)),
        };
        let destination = match (kinds[1], output) {
            (0 | 1, _) => HeldDestination::File(self.any(to.0)),
            (2, Some(output)) => HeldDestination::Output(output),
            _ => HeldDestination::Path(at(self.any(to.0), to.1.clone(), to.2)),
        };
        match copy::start_transfer(source, destination, options.as_ref()) {
            Ok(job) if self.jobs.len() < MOST_JOBS => self.jobs.push(job),
            // Dropped while it is under way.
            Ok(job) => drop(job),
            Err(failure) => failed(&failure, &[&from.1, &to.1]),
        }
        self.give_back(options);
    }

    fn look_at_jobs(&mut self) {
        for job in &self.jobs {
            let before = job.progress().bytes;
            match self.random.below(4) {
                0 => job.cancel(),
                1 => drop(job.subscribe()),
                2 => {
                    job.cancel();
                    job.subscribe().block();
                    assert!(job.outcome().is_some(), "it is ready and has not ended");
                }
                _ => {}
            }
            if let Some(Ok(done)) = job.outcome() {
                assert!(done.bytes >= before, "{done:?}, and {before} before");
                copied(&done);
            }
        }
        while !self.jobs.is_empty() && self.random.one_in(2) {
            let which = self.random.below(self.jobs.len());
            drop(self.jobs.swap_remove(which));
        }
    }

    /// None was granted.
    fn open_endpoint(&mut self) {
        let name = self.path();
        assert!(endpoints::open(&name).is_err(), "{name:?} is open");
        assert_eq!(endpoints::names(), [] as [String; 0]);
    }

    /// A stream from a file, or one that has ended.
    fn input(&mut self, which: usize) -> Option<InputStream> {
        let offset = self.random.number();
        match self.random.below(3) {
            0 => Some(get_stdin()),
            _ => self.any(which).read_via_stream(offset).ok(),
        }
    }

    /// A stream to a file.
    fn output(&mut self, which: usize) -> Option<OutputStream> {
        let offset = self.random.number() % 200_000;
        let file = self.any(which);
        match offset % 2 {
            0 => file.append_via_stream().ok(),
            _ => file.write_via_stream(offset).ok(),
        }
    }

    fn read(&mut self) {
        let from = self.location();
        let kind = self.random.below(8);
        let limit = self.random.number();
        let is_text = self.random.one_in(2);
        // A whole-file read of a FIFO has no time.
        if from.1.contains("fifo") {
            return;
        }
        let options = self.take_options();
        let input = self.input(from.0);
        let source = match (kind, &input) {
            (0 | 1, _) => Source::File(self.any(from.0)),
            (2, Some(input)) => Source::Input(input),
            _ => Source::Path(at(self.any(from.0), from.1.clone(), from.2)),
        };
        let length = if is_text {
            read::text(&source, options.as_ref(), limit).map(|text| text.len())
        } else {
            read::bytes(&source, options.as_ref(), limit).map(|bytes| bytes.len())
        };
        match length {
            Ok(length) => {
                assert!(u64::try_from(length).is_ok_and(|length| length <= limit));
                self.read += u64::from(length > 0);
            }
            Err(failure) => failed(&failure, &[&from.1]),
        }
        self.give_back(options);
    }
}

/// Whether it may be the file that the end is held to, or the FIFO, under whose own name it must stay.
fn touches_what_stays(path: &str) -> bool {
    path.contains("plain") || path.contains("fifo")
}

fn at(dir: &Descriptor, path: String, follow: bool) -> Location<'_> {
    let path_flags = if follow {
        PathFlags::SYMLINK_FOLLOW
    } else {
        PathFlags::empty()
    };
    Location {
        dir,
        path_flags,
        path,
    }
}

/// A success, and whether it moved anything.
fn copied(done: &Summary) -> u64 {
    assert_eq!(done.bytes, done.consumed, "{done:?}");
    assert_eq!(done.files + done.skipped, 1, "{done:?}");
    sound(done);
    u64::from(done.bytes > 0)
}

fn sound(done: &Summary) {
    assert!(done.bytes <= done.consumed, "{done:?}");
    assert!(done.shared <= done.bytes, "{done:?}");
    let none = done.directories + done.links + done.special + done.failed;
    assert_eq!(none, 0, "{done:?}");
}

fn failed(failure: &Failure, paths: &[&str]) {
    sound(&failure.done);
    if let Some(path) = &failure.path {
        assert!(paths.contains(&&**path), "a path that nobody gave");
    }
    // Nobody cancelled what was waited for.
    assert!(failure.cause != Cause::Cancelled, "{failure:?}");
}
