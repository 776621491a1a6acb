//! One copy, with all that is before it: what is drawn at random, and what the engine is asked for.

use std::path::Path;
use std::sync::Arc;

use copyist_engine::{
    Base, Cancel, Destination, Environment, Handle, Location, Options, Quota, Request, Side,
    Source, ambient_authority,
};
use rustix::fs::OFlags;

use crate::layout::{Fill, Layout, Stretch};
use crate::schedule::Rule;
use crate::world::{Form, Habits, Id, Node, ROOT, Snapshot, World};
use copyist_engine::sys::Time;

/// How the source is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Path,
    /// By a link to it, which is followed or not.
    Link(bool),
    Missing,
    Directory,
    Fifo,
    Socket,
    /// By an open descriptor, with these flags and this position.
    Descriptor(OFlags, u64),
}

/// Where the destination's name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Beside the source.
    Here,
    /// In a directory below.
    Below,
    /// In a directory that does not exist.
    Nowhere,
    /// In a file.
    InFile,
    /// With a slash behind it.
    Slash,
}

/// What has the destination's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Nothing,
    Old,
    Directory,
    Fifo,
    Socket,
    /// A link that leads nowhere.
    Dangling,
    LinkToOld,
    LinkToSource,
    /// Another name of the source.
    Source,
}

/// How the destination is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Path {
        place: Place,
        standing: Standing,
        follow: bool,
    },
    /// By an open descriptor on an old file or, where it is `same`, on the source.
    Descriptor {
        flags: OFlags,
        position: u64,
        same: bool,
    },
}

/// How the copy is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself.
    Itself,
    /// It is cancelled after so many steps.
    Cancel(usize),
    /// It is dropped after so many steps.
    Drop(usize),
}

/// An attribute of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    User,
    Privileged,
    AccessList,
}

impl Attribute {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user.kind",
            Self::Privileged => "security.capability",
            Self::AccessList => "system.posix_acl_access",
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) habits: Habits,
    pub(crate) source: Layout,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) old: Layout,
    pub(crate) old_mode: u32,
    /// Whether the old file was written after the source.
    pub(crate) old_is_newer: bool,
    /// The directory below is on another file system.
    pub(crate) across: bool,
    pub(crate) from: From,
    pub(crate) to: To,
    /// Paths are the process's own, and not beneath a directory.
    pub(crate) ambient: bool,
    pub(crate) options: Options,
    pub(crate) quota: Option<u64>,
    /// Other copies between the same directories came before, and what they found is remembered.
    pub(crate) warm: bool,
    /// What one step may move.
    pub(crate) budget: u64,
    pub(crate) rules: Vec<Rule>,
    pub(crate) ending: Ending,
}

/// The name that ends up with the copy, and what has it before.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) path: &'static str,
    pub(crate) before: Option<Id>,
}

/// A case put in place.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) world: Arc<World>,
    pub(crate) environment: Environment,
    pub(crate) request: Request,
    pub(crate) source: Id,
    /// None where no name leads to one.
    pub(crate) aim: Option<Aim>,
    pub(crate) quota: Option<Arc<Quota>>,
    pub(crate) handles: Vec<Handle>,
    pub(crate) held: Vec<(u64, OFlags)>,
    pub(crate) before: Snapshot,
}

impl Default for Case {
    /// A file of some blocks to a new name, and nothing goes wrong.
    fn default() -> Self {
        let data = |length| Layout(vec![(Stretch::Data, length)]);
        Self {
            habits: Habits::default(),
            source: data(50_000),
            mode: 0o644,
            owner: 0,
            attributes: Vec::new(),
            old: data(60_000),
            old_mode: 0o600,
            old_is_newer: false,
            across: false,
            from: From::Path,
            to: To::Path {
                place: Place::Here,
                standing: Standing::Nothing,
                follow: false,
            },
            ambient: false,
            options: Options::default(),
            quota: None,
            warm: false,
            budget: u64::MAX,
            rules: Vec::new(),
            ending: Ending::Itself,
        }
    }
}

impl Case {
    pub(crate) fn is_of_descriptor(&self) -> bool {
        matches!(self.to, To::Descriptor { .. })
    }

    pub(crate) fn appends(&self) -> bool {
        matches!(self.to, To::Descriptor { flags, .. } if flags.contains(OFlags::APPEND))
    }

    /// Whether both ends are one file, so that what is written may be what is read.
    pub(crate) fn is_one_file(&self) -> bool {
        match self.to {
            To::Path {
                standing, follow, ..
            } => standing == Standing::Source || standing == Standing::LinkToSource && follow,
            To::Descriptor { same, .. } => same,
        }
    }

    /// Puts everything in place.
    pub(crate) fn set_up(&self) -> Stage {
        let world = World::new(self.habits);
        let node = |form, device, mode| Node::new(form, device, mode);
        let file = |layout: &Layout, fill, device, mode, seconds| {
            let mut node = node(Form::File(layout.content(fill)), device, mode);
            node.modified = Time {
                seconds,
                nanoseconds: 5,
            };
            node
        };
        let mut source = file(&self.source, Fill::Noise, 1, self.mode, 1000);
        source.owner = self.owner;
        source.group = self.owner;
        for attribute in &self.attributes {
            let value = attribute.name().as_bytes().to_owned();
            source.xattrs.insert(attribute.name().into(), value);
        }
        let source = world.add(ROOT, "source", source);
        world.add(ROOT, "link", node(Form::Link("source".into()), 1, 0o777));
        world.add(ROOT, "fifo", node(Form::Fifo, 1, 0o644));
        world.add(ROOT, "socket", node(Form::Socket, 1, 0o644));
        let device = if self.across { 2 } else { 1 };
        let names = Form::Directory(std::collections::BTreeMap::new());
        let below = world.add(ROOT, "below", node(names, device, 0o755));

        let mut handles = Vec::new();
        let root = world.hold(ROOT, OFlags::PATH, 0, Side::Destination);
        let at = |path: &str, follow| {
            if self.ambient {
                Location {
                    base: Base::Ambient(ambient_authority()),
                    path: Path::new("/").join(path),
                    follow,
                }
            } else {
                Location {
                    base: Base::Beneath(root.clone()),
                    path: path.into(),
                    follow,
                }
            }
        };
        let request_source = match self.from {
            From::Path => Source::Path(at("source", false)),
            From::Link(follow) => Source::Path(at("link", follow)),
            From::Missing => Source::Path(at("missing", false)),
            From::Directory => Source::Path(at("below", false)),
            From::Fifo => Source::Path(at("fifo", false)),
            From::Socket => Source::Path(at("socket", false)),
            From::Descriptor(flags, position) => {
                let handle = world.hold(source, flags, position, Side::Source);
                handles.push(handle.clone());
                Source::File(handle)
            }
        };
        let modified = if self.old_is_newer { 2000 } else { 500 };
        let mut target = None;
        let (destination, aim) = match self.to {
            To::Descriptor {
                flags,
                position,
                same,
            } => {
                let id = if same {
                    source
                } else {
                    let old = file(&self.old, Fill::Old, device, self.old_mode, modified);
                    world.add(below, "to", old)
                };
                let path = if same { "source" } else { "below/to" };
                let handle = world.hold(id, flags, position, Side::Destination);
                handles.push(handle.clone());
                let aim = Aim {
                    path,
                    before: Some(id),
                };
                (Destination::File(handle), Some(aim))
            }
            To::Path {
                place,
                standing,
                follow,
            } => {
                let (directory, path, real, up, device) = match place {
                    Place::Below => (below, "below/to", "below/real", "../source", device),
                    _ => (ROOT, "to", "real", "source", 1),
                };
                let asked = match place {
                    Place::Here | Place::Below => path,
                    Place::Nowhere => "none/to",
                    Place::InFile => "source/to",
                    Place::Slash => "to/",
                };
                target = Some((directory, "to"));
                let link = |to: &str| node(Form::Link(to.into()), device, 0o777);
                let old = file(&self.old, Fill::Old, device, self.old_mode, modified);
                let aim = |path, before| Aim { path, before };
                let aim = match standing {
                    Standing::Nothing => aim(path, None),
                    Standing::Old => aim(path, Some(world.add(directory, "to", old))),
                    Standing::Directory => {
                        let names = Form::Directory(std::collections::BTreeMap::new());
                        let id = world.add(directory, "to", node(names, device, 0o755));
                        aim(path, Some(id))
                    }
                    Standing::Fifo => {
                        let fifo = node(Form::Fifo, device, 0o600);
                        aim(path, Some(world.add(directory, "to", fifo)))
                    }
                    Standing::Socket => {
                        let socket = node(Form::Socket, device, 0o600);
                        aim(path, Some(world.add(directory, "to", socket)))
                    }
                    Standing::Dangling => {
                        aim(path, Some(world.add(directory, "to", link("nothing"))))
                    }
                    Standing::LinkToOld => {
                        let old = world.add(directory, "real", old);
                        let link = world.add(directory, "to", link("real"));
                        if follow {
                            target = Some((directory, "real"));
                            aim(real, Some(old))
                        } else {
                            aim(path, Some(link))
                        }
                    }
                    Standing::LinkToSource => {
                        let link = world.add(directory, "to", link(up));
                        if follow {
                            target = None;
                            aim("source", Some(source))
                        } else {
                            aim(path, Some(link))
                        }
                    }
                    Standing::Source => {
                        world.link(directory, "to", source);
                        target = None;
                        aim(path, Some(source))
                    }
                };
                let aim = matches!(place, Place::Here | Place::Below).then_some(aim);
                (Destination::Path(at(asked, follow)), aim)
            }
        };
        let environment = world.environment();
        if self.warm {
            for path in ["warm", "below/warm"] {
                let request = Request {
                    source: Source::Path(at("source", false)),
                    destination: Destination::Path(at(path, false)),
                    options: Options::default(),
                };
                copyist_engine::copy_in(&environment, request, &Cancel::new())
                    .expect("a copy that nothing disturbs");
            }
            for directory in [ROOT, below] {
                world.state().unbind(directory, "warm".as_ref());
            }
        }
        let quota = self.quota.map(|bytes| Arc::new(Quota::new(bytes)));
        let mut options = self.options.clone();
        options.limits.total.clone_from(&quota);
        let held = handles.iter().map(|handle| world.held(handle)).collect();
        handles.push(root);
        world.begin(Some(source), target, self.rules.clone());
        Stage {
            environment,
            request: Request {
                source: request_source,
                destination,
                options,
            },
            source,
            aim,
            quota,
            handles,
            held,
            before: world.snapshot(),
            world,
        }
    }
}
