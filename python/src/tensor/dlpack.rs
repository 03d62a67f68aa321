//! `DLPack`: tensors for PyTorch, JAX and others, without a copy.

use std::sync::Arc;

use dlpark::{
    DlpackFlags, Managed, ManagedTensorBase,
    ffi::{DLDevice, DLManagedTensor, DLManagedTensorVersioned},
    metadata::Dynamic,
    python::{DlpackExporter, ExportRequest},
};
use pyo3::{exceptions::PyBufferError, prelude::*};

use super::Tensor;

impl Tensor {
    /// A managed tensor that shares the memory.
    fn managed<M: ManagedTensorBase>(&self) -> PyResult<Managed<M>> {
        let data = &self.data;
        let prepared = Dynamic::compact(data.signed_shape.clone()).prepare_as::<M>();
        let prepared = prepared.map_err(|error| PyBufferError::new_err(error.to_string()))?;
        let mut initialized = prepared.initialize(Arc::clone(data));
        initialized
            .set_data(data.pointer().cast())
            .set_device(DLDevice::CPU)
            .set_dtype(data.element.dlpack());
        #[expect(unsafe_code, reason = "DLPack hands memory to other libraries")]
        // SAFETY: the managed tensor owns the memory; shape and compact strides are those of the memory, which is writable.
        let managed = unsafe { initialized.finish() };
        Ok(managed)
    }
}

impl DlpackExporter for Tensor {
    fn device(&self) -> DLDevice {
        DLDevice::CPU
    }

    fn flags(&self) -> DlpackFlags {
        DlpackFlags::empty()
    }

    fn prepare_export(&self, _py: Python<'_>, _request: &ExportRequest<'_>) -> PyResult<()> {
        Ok(())
    }

    fn export_legacy(&self, _py: Python<'_>) -> PyResult<Managed<DLManagedTensor>> {
        self.managed()
    }

    fn export_versioned(&self, _py: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.managed()
    }
}
