//! The line of a guest program, as `tests/guests/src/lib.rs` has it.

/// `ok key=value ..` or `err key=value ..`.
#[derive(Debug)]
pub(crate) struct Answer {
    line: String,
}

impl Answer {
    pub(crate) fn parse(line: &str) -> Self {
        assert!(
            line == "ok" || line.starts_with("ok ") || line.starts_with("err "),
            "{line:?} is no answer"
        );
        Self {
            line: line.to_owned(),
        }
    }

    /// The value of a key. Of `path`, the last, all that follows.
    #[track_caller]
    pub(crate) fn get(&self, key: &str) -> &str {
        let found = self.line.split_once(&format!(" {key}="));
        let Some((_, value)) = found else {
            panic!("{:?} has no {key}", self.line)
        };
        match key {
            "path" => value,
            _ => value.split(' ').next().unwrap_or_default(),
        }
    }

    #[track_caller]
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.get(key).parse().unwrap()
    }

    /// A copy or a read that succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert!(self.line.starts_with("ok"), "{}", self.line);
        self
    }

    /// One that failed, for this cause at this side (`-` for none).
    #[track_caller]
    pub(crate) fn failed(self, cause: &str, side: &str) -> Self {
        assert!(self.line.starts_with("err"), "{}", self.line);
        assert_eq!(
            (self.get("cause"), self.get("side")),
            (cause, side),
            "{}",
            self.line
        );
        self
    }
}
