//! The resource `options`: plain fields, each with a setter and a getter.

use std::time::Duration;

use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::types::{
    self, Durability, Existing, Preserve, Reflink, Sparse, Special, Symlinks, Window, WriteMode,
};
use crate::convert;
use crate::ctx::CopyCtxView;
use crate::options::Asked;

impl types::Host for CopyCtxView<'_> {}

impl types::HostOptions for CopyCtxView<'_> {
    fn new(&mut self) -> Result<Resource<Asked>> {
        Ok(self.table.push(Asked::default())?)
    }

    fn set_existing(&mut self, options: Resource<Asked>, value: Existing) -> Result<()> {
        self.table.get_mut(&options)?.files.existing = convert::existing_in(value);
        Ok(())
    }

    fn existing(&mut self, options: Resource<Asked>) -> Result<Existing> {
        Ok(convert::existing_out(
            self.table.get(&options)?.files.existing,
        ))
    }

    fn set_write_mode(&mut self, options: Resource<Asked>, value: WriteMode) -> Result<()> {
        self.table.get_mut(&options)?.files.write_mode = convert::write_mode_in(value);
        Ok(())
    }

    fn write_mode(&mut self, options: Resource<Asked>) -> Result<WriteMode> {
        Ok(convert::write_mode_out(
            self.table.get(&options)?.files.write_mode,
        ))
    }

    fn set_reflink(&mut self, options: Resource<Asked>, value: Reflink) -> Result<()> {
        self.table.get_mut(&options)?.files.reflink = convert::reflink_in(value);
        Ok(())
    }

    fn reflink(&mut self, options: Resource<Asked>) -> Result<Reflink> {
        Ok(convert::reflink_out(
            self.table.get(&options)?.files.reflink,
        ))
    }

    fn set_sparse(&mut self, options: Resource<Asked>, value: Sparse) -> Result<()> {
        self.table.get_mut(&options)?.files.sparse = convert::sparse_in(value);
        Ok(())
    }

    fn sparse(&mut self, options: Resource<Asked>) -> Result<Sparse> {
        Ok(convert::sparse_out(self.table.get(&options)?.files.sparse))
    }

    fn set_durability(&mut self, options: Resource<Asked>, value: Durability) -> Result<()> {
        self.table.get_mut(&options)?.files.durability = convert::durability_in(value);
        Ok(())
    }

    fn durability(&mut self, options: Resource<Asked>) -> Result<Durability> {
        Ok(convert::durability_out(
            self.table.get(&options)?.files.durability,
        ))
    }

    fn set_preserve(&mut self, options: Resource<Asked>, value: Preserve) -> Result<()> {
        self.table.get_mut(&options)?.files.preserve = convert::preserve_in(value);
        Ok(())
    }

    fn preserve(&mut self, options: Resource<Asked>) -> Result<Preserve> {
        Ok(convert::preserve_out(
            self.table.get(&options)?.files.preserve,
        ))
    }

    fn set_require(&mut self, options: Resource<Asked>, value: Preserve) -> Result<()> {
        self.table.get_mut(&options)?.files.require = convert::preserve_in(value);
        Ok(())
    }

    fn require(&mut self, options: Resource<Asked>) -> Result<Preserve> {
        Ok(convert::preserve_out(
            self.table.get(&options)?.files.require,
        ))
    }

    fn set_window(&mut self, options: Resource<Asked>, value: Option<Window>) -> Result<()> {
        self.table.get_mut(&options)?.files.window = value.map(convert::window_in);
        Ok(())
    }

    fn window(&mut self, options: Resource<Asked>) -> Result<Option<Window>> {
        Ok(self
            .table
            .get(&options)?
            .files
            .window
            .map(convert::window_out))
    }

    fn set_zero_copy(&mut self, options: Resource<Asked>, value: bool) -> Result<()> {
        self.table.get_mut(&options)?.files.zero_copy = value;
        Ok(())
    }

    fn zero_copy(&mut self, options: Resource<Asked>) -> Result<bool> {
        Ok(self.table.get(&options)?.files.zero_copy)
    }

    fn set_timeout(&mut self, options: Resource<Asked>, value: Option<u64>) -> Result<()> {
        self.table.get_mut(&options)?.files.timeout = value.map(Duration::from_nanos);
        Ok(())
    }

    fn timeout(&mut self, options: Resource<Asked>) -> Result<Option<u64>> {
        let timeout = self.table.get(&options)?.files.timeout;
        // It was set in nanoseconds, so that it is none too many.
        Ok(timeout.and_then(|timeout| u64::try_from(timeout.as_nanos()).ok()))
    }

    fn set_symlinks(&mut self, options: Resource<Asked>, value: Symlinks) -> Result<()> {
        self.table.get_mut(&options)?.symlinks = convert::symlinks_in(value);
        Ok(())
    }

    fn symlinks(&mut self, options: Resource<Asked>) -> Result<Symlinks> {
        Ok(convert::symlinks_out(self.table.get(&options)?.symlinks))
    }

    fn set_special(&mut self, options: Resource<Asked>, value: Special) -> Result<()> {
        self.table.get_mut(&options)?.special = convert::special_in(value);
        Ok(())
    }

    fn special(&mut self, options: Resource<Asked>) -> Result<Special> {
        Ok(convert::special_out(self.table.get(&options)?.special))
    }

    fn set_one_file_system(&mut self, options: Resource<Asked>, value: bool) -> Result<()> {
        self.table.get_mut(&options)?.one_file_system = value;
        Ok(())
    }

    fn one_file_system(&mut self, options: Resource<Asked>) -> Result<bool> {
        Ok(self.table.get(&options)?.one_file_system)
    }

    fn set_keep_going(&mut self, options: Resource<Asked>, value: bool) -> Result<()> {
        self.table.get_mut(&options)?.keep_going = value;
        Ok(())
    }

    fn keep_going(&mut self, options: Resource<Asked>) -> Result<bool> {
        Ok(self.table.get(&options)?.keep_going)
    }

    /// They are read when a tree is asked for, so that a component in between sees them as they are.
    fn set_exclude(&mut self, options: Resource<Asked>, patterns: Vec<String>) -> Result<()> {
        self.table.get_mut(&options)?.exclude = patterns;
        Ok(())
    }

    fn exclude(&mut self, options: Resource<Asked>) -> Result<Vec<String>> {
        Ok(self.table.get(&options)?.exclude.clone())
    }

    fn drop(&mut self, options: Resource<Asked>) -> Result<()> {
        self.table.delete(options)?;
        Ok(())
    }
}
