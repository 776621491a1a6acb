//! The resource `options`: plain fields, each with a setter and a getter.

use std::time::Duration;

use copyist_engine::Options;
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::types::{
    self, Durability, Existing, Preserve, Reflink, Sparse, Window, WriteMode,
};
use crate::convert;
use crate::ctx::CopyCtxView;

impl types::Host for CopyCtxView<'_> {}

impl types::HostOptions for CopyCtxView<'_> {
    fn new(&mut self) -> Result<Resource<Options>> {
        Ok(self.table.push(Options::default())?)
    }

    fn set_existing(&mut self, options: Resource<Options>, value: Existing) -> Result<()> {
        self.table.get_mut(&options)?.existing = convert::existing_in(value);
        Ok(())
    }

    fn existing(&mut self, options: Resource<Options>) -> Result<Existing> {
        Ok(convert::existing_out(self.table.get(&options)?.existing))
    }

    fn set_write_mode(&mut self, options: Resource<Options>, value: WriteMode) -> Result<()> {
        self.table.get_mut(&options)?.write_mode = convert::write_mode_in(value);
        Ok(())
    }

    fn write_mode(&mut self, options: Resource<Options>) -> Result<WriteMode> {
        Ok(convert::write_mode_out(
            self.table.get(&options)?.write_mode,
        ))
    }

    fn set_reflink(&mut self, options: Resource<Options>, value: Reflink) -> Result<()> {
        self.table.get_mut(&options)?.reflink = convert::reflink_in(value);
        Ok(())
    }

    fn reflink(&mut self, options: Resource<Options>) -> Result<Reflink> {
        Ok(convert::reflink_out(self.table.get(&options)?.reflink))
    }

    fn set_sparse(&mut self, options: Resource<Options>, value: Sparse) -> Result<()> {
        self.table.get_mut(&options)?.sparse = convert::sparse_in(value);
        Ok(())
    }

    fn sparse(&mut self, options: Resource<Options>) -> Result<Sparse> {
        Ok(convert::sparse_out(self.table.get(&options)?.sparse))
    }

    fn set_durability(&mut self, options: Resource<Options>, value: Durability) -> Result<()> {
        self.table.get_mut(&options)?.durability = convert::durability_in(value);
        Ok(())
    }

    fn durability(&mut self, options: Resource<Options>) -> Result<Durability> {
        Ok(convert::durability_out(
            self.table.get(&options)?.durability,
        ))
    }

    fn set_preserve(&mut self, options: Resource<Options>, value: Preserve) -> Result<()> {
        self.table.get_mut(&options)?.preserve = convert::preserve_in(value);
        Ok(())
    }

    fn preserve(&mut self, options: Resource<Options>) -> Result<Preserve> {
        Ok(convert::preserve_out(self.table.get(&options)?.preserve))
    }

    fn set_require(&mut self, options: Resource<Options>, value: Preserve) -> Result<()> {
        self.table.get_mut(&options)?.require = convert::preserve_in(value);
        Ok(())
    }

    fn require(&mut self, options: Resource<Options>) -> Result<Preserve> {
        Ok(convert::preserve_out(self.table.get(&options)?.require))
    }

    fn set_window(&mut self, options: Resource<Options>, value: Option<Window>) -> Result<()> {
        self.table.get_mut(&options)?.window = value.map(convert::window_in);
        Ok(())
    }

    fn window(&mut self, options: Resource<Options>) -> Result<Option<Window>> {
        Ok(self.table.get(&options)?.window.map(convert::window_out))
    }

    fn set_zero_copy(&mut self, options: Resource<Options>, value: bool) -> Result<()> {
        self.table.get_mut(&options)?.zero_copy = value;
        Ok(())
    }

    fn zero_copy(&mut self, options: Resource<Options>) -> Result<bool> {
        Ok(self.table.get(&options)?.zero_copy)
    }

    fn set_timeout(&mut self, options: Resource<Options>, value: Option<u64>) -> Result<()> {
        self.table.get_mut(&options)?.timeout = value.map(Duration::from_nanos);
        Ok(())
    }

    fn timeout(&mut self, options: Resource<Options>) -> Result<Option<u64>> {
        let timeout = self.table.get(&options)?.timeout;
        // It was set in nanoseconds, so that it is none too many.
        Ok(timeout.and_then(|timeout| u64::try_from(timeout.as_nanos()).ok()))
    }

    fn drop(&mut self, options: Resource<Options>) -> Result<()> {
        self.table.delete(options)?;
        Ok(())
    }
}
