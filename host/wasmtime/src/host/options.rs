//! The resource `options`: plain fields, each with a setter and a getter.

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

    fn drop(&mut self, options: Resource<Options>) -> Result<()> {
        self.table.delete(options)?;
        Ok(())
    }
}
