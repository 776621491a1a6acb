//! The command line of a guest program.

use std::env;
use std::str::FromStr;
use std::time::Duration;

use copyist_guest::{
    CopyOptions, Descriptor, Durability, ErrorCode, Existing, Preserve, Reflink, Sparse, Window,
};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

/// The command line, of which every word is taken once.
#[derive(Debug)]
pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    /// Those of this program.
    pub fn from_env() -> Self {
        Arguments {
            words: env::args().skip(1).collect(),
        }
    }

    /// Takes `--name=value`.
    pub fn value(&mut self, name: &str) -> Option<String> {
        self.take(|word| {
            Some(
                word.strip_prefix("--")?
                    .strip_prefix(name)?
                    .strip_prefix('=')?
                    .into(),
            )
        })
    }

    /// Takes `--name=number`.
    pub fn number(&mut self, name: &str) -> Option<u64> {
        self.value(name).map(|value| parse(&value))
    }

    /// Takes `--name`.
    pub fn flag(&mut self, name: &str) -> bool {
        self.take(|word| (word.strip_prefix("--") == Some(name)).then_some(()))
            .is_some()
    }

    /// Takes the rest, which is paths.
    pub fn paths<const N: usize>(self) -> [String; N] {
        self.rest()
            .try_into()
            .unwrap_or_else(|words| panic!("{N} paths are needed, not {words:?}"))
    }

    /// Takes the rest, which is pairs of paths.
    pub fn pairs(self) -> Vec<[String; 2]> {
        let words = self.rest();
        let (pairs, []) = words.as_chunks() else {
            panic!("pairs of paths are needed, not {words:?}");
        };
        pairs.to_vec()
    }

    /// Takes the rest, which is words.
    pub fn rest(self) -> Vec<String> {
        if let Some(word) = self.words.iter().find(|word| word.starts_with("--")) {
            panic!("{word} is unknown");
        }
        self.words
    }

    /// Takes `--existing=refuse|skip|update|write`, `--replace`, `--reflink=auto|always|never`,
    /// `--sparse=auto|always|never`, `--durability=none|each|end`, `--preserve=NAME,..`, `--require=NAME,..`,
    /// `--window=SOURCE:[LENGTH]:DESTINATION`, `--zero-copy` and `--timeout=NANOSECONDS`.
    pub fn copy_options(&mut self) -> CopyOptions {
        let mut options = CopyOptions::new();
        options.replace(self.flag("replace"));
        if let Some(word) = self.value("existing") {
            options.existing(match &*word {
                "refuse" => Existing::Refuse,
                "skip" => Existing::Skip,
                "update" => Existing::Update,
                "write" => Existing::Write,
                _ => panic!("--existing={word} is unknown"),
            });
        }
        if let Some(word) = self.value("reflink") {
            options.reflink(match &*word {
                "auto" => Reflink::Auto,
                "always" => Reflink::Always,
                "never" => Reflink::Never,
                _ => panic!("--reflink={word} is unknown"),
            });
        }
        if let Some(word) = self.value("sparse") {
            options.sparse(match &*word {
                "auto" => Sparse::Auto,
                "always" => Sparse::Always,
                "never" => Sparse::Never,
                _ => panic!("--sparse={word} is unknown"),
            });
        }
        if let Some(word) = self.value("durability") {
            options.durability(match &*word {
                "none" => Durability::None,
                "each" => Durability::Each,
                "end" => Durability::End,
                _ => panic!("--durability={word} is unknown"),
            });
        }
        if let Some(words) = self.value("preserve") {
            options.preserve(preserve(&words));
        }
        if let Some(words) = self.value("require") {
            options.require(preserve(&words));
        }
        if let Some(window) = self.window() {
            options.window(window);
        }
        options.zero_copy(self.flag("zero-copy"));
        if let Some(nanoseconds) = self.number("timeout") {
            options.timeout(Duration::from_nanos(nanoseconds));
        }
        options
    }

    /// Takes `--window=SOURCE:[LENGTH]:DESTINATION`.
    pub fn window(&mut self) -> Option<Window> {
        self.value("window").map(|word| window(&word))
    }

    /// Takes `--name=DIRECTORY`: the directory that was granted under just this name.
    pub fn directory(&mut self, name: &str) -> Option<Descriptor> {
        let wanted = self.value(name)?;
        let granted = get_directories()
            .into_iter()
            .find(|(_, name)| *name == wanted);
        Some(
            granted
                .unwrap_or_else(|| panic!("{wanted} is not granted"))
                .0,
        )
    }

    /// Takes `--name=r|w|rw`, else `default`: the rights with which an end is opened.
    pub fn rights(&mut self, name: &str, default: DescriptorFlags) -> DescriptorFlags {
        match self.value(name).as_deref() {
            None => default,
            Some("r") => DescriptorFlags::READ,
            Some("w") => DescriptorFlags::WRITE,
            Some("rw") => DescriptorFlags::READ | DescriptorFlags::WRITE,
            Some(word) => panic!("--{name}={word} is unknown"),
        }
    }

    fn take<T>(&mut self, wanted: impl Fn(&str) -> Option<T>) -> Option<T> {
        let index = self.words.iter().position(|word| wanted(word).is_some())?;
        wanted(&self.words.remove(index))
    }
}

/// Opens a file, or a directory, by a path that begins with the name of a granted directory.
pub fn open(path: &str, how: OpenFlags, rights: DescriptorFlags) -> Result<Descriptor, ErrorCode> {
    let granted = get_directories();
    let (dir, rest) = granted
        .iter()
        .find_map(|(dir, name)| Some((dir, path.strip_prefix(name.as_str())?)))
        .unwrap_or_else(|| panic!("no directory is granted for {path}"));
    let rest = match rest.trim_start_matches('/') {
        "" => ".",
        rest => rest,
    };
    dir.open_at(PathFlags::SYMLINK_FOLLOW, rest, how, rights)
}

fn preserve(words: &str) -> Preserve {
    let named = |word: &str| Preserve::from_name(&word.to_uppercase());
    let known = |word| named(word).unwrap_or_else(|| panic!("{word} cannot be preserved"));
    words.split(',').map(known).collect()
}

fn window(word: &str) -> Window {
    let Ok([source, length, destination]) =
        <[&str; 3]>::try_from(&*word.split(':').collect::<Vec<_>>())
    else {
        panic!("--window={word} is not SOURCE:[LENGTH]:DESTINATION");
    };
    Window {
        source_offset: parse(source),
        length: (!length.is_empty()).then(|| parse(length)),
        destination_offset: parse(destination),
    }
}

fn parse<T: FromStr>(word: &str) -> T {
    word.parse()
        .unwrap_or_else(|_| panic!("{word} is not a number"))
}
