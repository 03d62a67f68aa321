//! The models route: the list of models, and their files.

use std::{io::SeekFrom, time::Duration};

use futures::TryStreamExt as _;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use pushdown::wire::header::MODELS_PATH;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

use crate::{
    access::{Denied, ModelScope},
    body::{self, Body},
    error::{Error, ErrorKind, Result},
    models::ModelRegistry,
    resign::ModelsAdmission,
    routes::http::{insert, range, respond},
};

/// Describes the models that pipelines can use, and sends their files.
#[derive(Debug, Clone)]
pub(super) struct ModelsRoute {
    models: ModelRegistry,
    max_wait: Duration,
}

impl ModelsRoute {
    /// The route to `models`. Requests wait up to `max_wait` until all of them have been inspected.
    pub(super) const fn new(models: ModelRegistry, max_wait: Duration) -> Self {
        Self { models, max_wait }
    }

    /// Answers a request for the list of models, for a model's ONNX file, or for a file of external weights. For the caller, only
    /// the models in its scope exist. Of a file it can ask for a range.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an unknown digest; [`ErrorKind::InvalidRange`] for a range outside the file;
    /// [`ErrorKind::NotImplemented`] if weights are not served; and those of
    /// [`wait_until_ready`](ModelRegistry::wait_until_ready).
    pub(super) async fn answer<B>(&self, admission: ModelsAdmission, _body: B) -> Result<Response<Body>> {
        let ModelsAdmission { head, scope } = admission;
        self.models.wait_until_ready(self.max_wait).await?;
        let rest = head.uri.path().strip_prefix(MODELS_PATH).unwrap_or_default();
        match rest.strip_prefix('/').filter(|digest| !digest.is_empty()) {
            None => self.list(&scope),
            Some(digest) => self.weights(digest, scope, &head.headers).await,
        }
    }

    fn list(&self, scope: &ModelScope) -> Result<Response<Body>> {
        let list = json!({ "models": self.models.descriptions(scope) });
        let json = serde_json::to_vec(&list).map_err(|error| {
            Error::new(ErrorKind::Internal, "cannot write the list of models as JSON").with_source(error)
        })?;
        let mut headers = headers_of("application/json");
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(json.len()));
        Ok(respond(StatusCode::OK, headers, body::full(json)))
    }

    async fn weights(&self, digest: &str, scope: ModelScope, request: &HeaderMap) -> Result<Response<Body>> {
        if !self.models.serves_weights() {
            return Err(Error::new(
                ErrorKind::NotImplemented,
                "this gateway does not serve the weights of its models (serve-weights is false)",
            ));
        }
        let unreadable = |error: std::io::Error| {
            Error::new(ErrorKind::Internal, "cannot read the model's file").with_source(error)
        };
        let (models, wanted) = (self.models.clone(), digest.to_owned());
        #[expect(
            clippy::disallowed_methods,
            reason = "opens a file, as `tokio::fs` does, and computes nothing"
        )]
        let opening = tokio::task::spawn_blocking(move || models.open_file(&wanted, &scope));
        let opened = opening.await.map_err(|error| unreadable(error.into()))?;
        let file = opened.ok_or_else(|| self.unknown_digest(digest))?;
        let mut file = tokio::fs::File::from_std(file.map_err(unreadable)?);
        let length = file.metadata().await.map_err(unreadable)?.len();
        let mut headers = headers_of("application/octet-stream");
        insert(&mut headers, header::ETAG.as_str(), &format!("\"{digest}\""));
        let (status, range) = range::select(request, &mut headers, length)?;
        file.seek(SeekFrom::Start(range.start))
            .await
            .map_err(unreadable)?;
        let pieces = ReaderStream::with_capacity(file.take(range.end - range.start), body::BUFFER);
        let stream = StreamBody::new(pieces.map_ok(Frame::data).map_err(Into::into));
        Ok(respond(status, headers, stream.boxed_unsync()))
    }

    /// The error for a digest that no model of the caller has. Whether another model has it is only for the audit log.
    fn unknown_digest(&self, digest: &str) -> Error {
        let error = Error::new(
            ErrorKind::NotFound,
            format!("unknown digest `{digest}`: no model and no weight file of this gateway has it"),
        );
        match self.models.name_of_file(digest) {
            Some(name) => error.with_source(Denied::NoModel(name)),
            None => error,
        }
    }
}

fn headers_of(content_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))])
}

#[cfg(all(test, not(feature = "models")))]
mod tests {
    use http::{Request, StatusCode};

    use super::*;

    #[tokio::test]
    async fn the_list_is_empty_without_the_feature() {
        let models = ModelRegistry::new(None, 0).unwrap();
        let route = ModelsRoute::new(models, Duration::ZERO);
        let get = |path: &str| {
            let (head, ()) = Request::get(path).body(()).unwrap().into_parts();
            ModelsAdmission::unchanged(head)
        };
        let list = route.answer(get(MODELS_PATH), ()).await.unwrap();
        assert_eq!(list.status(), StatusCode::OK);
        let list = list.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(list, r#"{"models":[]}"#);
        let digest = get(&format!("{MODELS_PATH}/0a"));
        let weights = route.answer(digest, ()).await;
        assert_eq!(weights.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
