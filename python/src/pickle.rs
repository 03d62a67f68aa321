//! How objects pickle: with their class and the arguments of its constructor.

use pyo3::{
    prelude::*,
    types::{PyMemoryView, PyType},
};

/// The result of `__reduce_ex__`.
pub(crate) type Pickled<'py, Arguments> = (Bound<'py, PyType>, Arguments);

/// The memory of an object as an argument: from protocol 5 on a buffer, which a pickler with a callback for buffers keeps out of the stream,
/// and a copy in `bytes` before.
pub(crate) fn memory<'py>(object: &Bound<'py, PyAny>, protocol: u8) -> PyResult<Bound<'py, PyAny>> {
    if protocol >= 5 {
        let pickle = object.py().import("pickle")?;
        return pickle.call_method1("PickleBuffer", (object,));
    }
    PyMemoryView::from(object)?.call_method0("tobytes")
}
