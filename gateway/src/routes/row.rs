//! What the table of routes says about each route.

use http::{Method, request::Parts};
use pushdown::wire::header;

use crate::{
    error::{Error, ErrorKind, Result},
    s3::query,
};

/// What the requests of a route address. The first row of the table that fits has the request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// This path.
    Path(&'static str),
    /// This path, and those below it.
    Below(&'static str),
    /// Any object, with a pipeline in a header or in the query.
    Pipeline,
    /// Everything.
    Anything,
}

/// The methods of a route.
#[derive(Debug, Clone, Copy)]
pub(super) enum Methods {
    /// Whatever its admission or its handler accepts.
    Any,
    /// Only these. Others get this error, once they are admitted.
    Only(&'static [Method], &'static str),
}

impl Place {
    /// Whether a request is here. On a virtual host every path is a key.
    pub(super) fn contains(self, head: &Parts, is_virtual_host: bool) -> bool {
        let path = head.uri.path();
        match self {
            Self::Path(_) | Self::Below(_) if is_virtual_host => false,
            Self::Path(own) => path == own,
            Self::Below(own) => path
                .strip_prefix(own)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Self::Pipeline => has_pipeline(head),
            Self::Anything => true,
        }
    }
}

impl Methods {
    /// Checks a method.
    ///
    /// # Errors
    /// [`ErrorKind::MethodNotAllowed`] for one that is not listed.
    pub(super) fn check(self, method: &Method) -> Result<()> {
        match self {
            Self::Only(methods, message) if !methods.contains(method) => {
                Err(Error::new(ErrorKind::MethodNotAllowed, message))
            }
            Self::Any | Self::Only(..) => Ok(()),
        }
    }
}

fn has_pipeline(head: &Parts) -> bool {
    let query = head.uri.query();
    head.headers.contains_key(header::PIPELINE)
        || query.is_some_and(|query| query::values(query, header::PIPELINE).next().is_some())
}
