//! Whether a component built against an older contract finds all of it in a newer one.

use std::collections::HashMap;

use crate::{Contract, Kind};

/// What the older contract declares and the newer one lacks or declares otherwise, in words.
///
/// Stricter than linking needs: a type that no function uses yet must stay as it is too, since
/// the sources of guests may name it. What the newer contract adds beside is no break.
pub fn breaks(older: &Contract, newer: &Contract) -> Vec<String> {
    let newer = newer.items();
    let shapes: HashMap<_, _> = newer.iter().map(|item| (&*item.path, item)).collect();
    let older = older
        .items()
        .into_iter()
        .filter(|item| item.kind != Kind::Part);
    older
        .filter_map(|old| match shapes.get(&*old.path) {
            None => Some(format!("{} is gone", old.path)),
            Some(new) if new.shape != old.shape => Some(format!(
                "{} was `{}`, is `{}`",
                old.path, old.shape, new.shape
            )),
            Some(new) if new.since != old.since => Some(format!(
                "{} was @since {:?}, is {:?}",
                old.path, old.since, new.since
            )),
            Some(_) => None,
        })
        .collect()
}

/// Whether a component that imports all of the older text links where the newer one is offered:
/// both are encoded as components, and the validator decides.
#[cfg(feature = "semver-check")]
pub fn links(older: &str, newer: &str) -> Result<(), String> {
    let mut resolve = wit_parser::Resolve::default();
    let mut worlds = Vec::new();
    for (text, patch, dependencies) in [
        (older, u64::MAX - 1, crate::dependencies()?),
        (newer, u64::MAX, Vec::new()),
    ] {
        // Two packages of one name share a `Resolve` only under two versions. The check itself
        // takes no notice of them.
        let mut group = crate::parse_package(text)?;
        group
            .main
            .name
            .version
            .as_mut()
            .expect("the package line names a version")
            .patch = patch;
        let package = resolve.push_groups(group, dependencies);
        let package = package.map_err(|error| error.render(&resolve.source_map))?;
        let world = resolve.packages[package].worlds.get("imports");
        worlds.push(*world.ok_or("the contract has no world `imports`")?);
    }
    wit_component::semver_check(resolve, worlds[0], worlds[1]).map_err(|error| format!("{error:#}"))
}
