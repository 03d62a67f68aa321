//! The buffer protocol: tensors for `memoryview` and NumPy, and the bytes of other objects.

use std::{ffi::c_int, ptr};

use pyo3::{buffer::PyBuffer, exceptions::PyBufferError, ffi, prelude::*, types::PyMemoryView};

use super::Tensor;
use crate::error::config;

/// Fills the view of a tensor.
///
/// # Safety
/// `view` is null or valid for writes, as Python passes it.
#[expect(unsafe_code, reason = "the buffer protocol fills a C structure")]
pub(super) unsafe fn fill(
    tensor: Bound<'_, Tensor>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let wants = |flag: c_int| flags & flag == flag;
    let data = &tensor.get().data;
    // Row-major memory is also column-major only with at most one axis.
    if wants(ffi::PyBUF_F_CONTIGUOUS) && !wants(ffi::PyBUF_C_CONTIGUOUS) && data.shape.len() > 1 {
        return Err(PyBufferError::new_err("a tensor is row-major, not column-major"));
    }
    // SAFETY: Python passes a structure to fill, or null.
    let Some(view) = (unsafe { view.as_mut() }) else {
        return Err(PyBufferError::new_err("no buffer to fill"));
    };
    view.buf = data.pointer().cast();
    // Both fit: the constructor checks the bytes of the whole tensor.
    let signed = |bytes: usize| isize::try_from(bytes).unwrap_or(isize::MAX);
    view.len = signed(data.memory.len());
    view.itemsize = signed(data.element.bytes());
    view.readonly = 0;
    view.format = if wants(ffi::PyBUF_FORMAT) {
        data.element.format().as_ptr().cast_mut()
    } else {
        ptr::null_mut()
    };
    view.ndim = c_int::try_from(data.shape.len())
        .map_err(|_| PyBufferError::new_err("a tensor has too many axes"))?;
    let has_shape = wants(ffi::PyBUF_ND);
    view.shape = if has_shape {
        data.signed_shape.as_ptr().cast_mut()
    } else {
        ptr::null_mut()
    };
    view.strides = if wants(ffi::PyBUF_STRIDES) {
        data.strides.as_ptr().cast_mut()
    } else {
        ptr::null_mut()
    };
    view.suboffsets = ptr::null_mut();
    view.internal = ptr::null_mut();
    // The view owns the tensor, and the tensor the memory, the shape and the strides.
    view.obj = tensor.into_any().into_ptr();
    Ok(())
}

/// Copies the elements of an object with a contiguous buffer, such as `bytes`, `array.array` or a NumPy array.
pub(super) fn copy_from(py: Python<'_>, object: &Bound<'_, PyAny>, bytes: &mut [u8]) -> PyResult<()> {
    let view = PyMemoryView::from(object)?;
    let found: usize = view.getattr("nbytes")?.extract()?;
    if found != bytes.len() {
        return Err(config(format!(
            "invalid data: expected {} bytes, found {found}",
            bytes.len()
        )));
    }
    match as_bytes(&view)? {
        Some(buffer) => buffer.copy_to_slice(py, bytes),
        None => Ok(()),
    }
}

/// A copy of the elements of an object with a contiguous buffer.
pub(crate) fn to_vec(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    as_bytes(&PyMemoryView::from(object)?)?.map_or_else(|| Ok(Vec::new()), |buffer| buffer.to_vec(py))
}

/// The elements of a contiguous view as bytes; `None` if there are none, since Python does not cast such a view.
fn as_bytes(view: &Bound<'_, PyMemoryView>) -> PyResult<Option<PyBuffer<u8>>> {
    let count: usize = view.getattr("nbytes")?.extract()?;
    if count == 0 {
        return Ok(None);
    }
    // Of a view, all parts of the buffer are known, which an object may leave out.
    PyBuffer::get(&view.call_method1("cast", ("B",))?).map(Some)
}

/// Calls `write` with the bytes of a writable object, such as a `memoryview` cast to bytes, without the interpreter lock.
pub(crate) fn write_to<T: Send>(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    write: impl FnOnce(&mut [u8]) -> T + Send,
) -> PyResult<T> {
    let Some(buffer) = as_bytes(&PyMemoryView::from(object)?)? else {
        return Ok(write(&mut []));
    };
    if buffer.readonly() {
        return Err(config("invalid buffer: expected a writable one"));
    }
    let (pointer, len) = (buffer.buf_ptr().cast::<u8>(), buffer.len_bytes());
    // SAFETY: the buffer is writable, contiguous and held until `write` returns. As for every function that fills a buffer without
    // the lock (`readinto` is another), the caller leaves it alone until then.
    #[expect(unsafe_code, reason = "the memory of another Python object")]
    let bytes = unsafe { std::slice::from_raw_parts_mut(pointer, len) };
    let written = py.detach(|| write(bytes));
    drop(buffer);
    Ok(written)
}
