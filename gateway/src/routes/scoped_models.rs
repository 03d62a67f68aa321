//! The models of one caller: in re-sign mode those of its key, in forward mode all.

use std::sync::{Arc, OnceLock};

use pushdown::pipeline::{NamedModel, Resolver};

use crate::{
    access::{Denied, ModelScope},
    error::{Error, Result},
    models::ModelRegistry,
};

/// Resolves the models that a caller can use. For it, no others exist.
#[derive(Debug)]
pub(super) struct ScopedModels<'a> {
    models: &'a ModelRegistry,
    scope: &'a ModelScope,
    /// The first model that the caller named and may not use.
    denied: OnceLock<Denied>,
}

impl<'a> ScopedModels<'a> {
    /// Parses a text that may name models.
    ///
    /// # Errors
    /// Those of `parse`. To the caller, a model outside of `scope` is an unknown one; in the audit log, it is [`Denied`].
    pub(super) fn parse<T>(
        models: &'a ModelRegistry,
        scope: &'a ModelScope,
        parse: impl FnOnce(&dyn Resolver) -> pushdown::Result<T>,
    ) -> Result<T> {
        let scoped = Self {
            models,
            scope,
            denied: OnceLock::new(),
        };
        parse(&scoped).map_err(|error| {
            let error = Error::from(error);
            match scoped.denied.into_inner() {
                Some(denied) => error.with_source(denied),
                None => error,
            }
        })
    }
}

impl Resolver for ScopedModels<'_> {
    fn resolve(&self, name: &str) -> pushdown::Result<Arc<dyn NamedModel>> {
        if let Err(denied) = self.scope.check(name) {
            self.denied.get_or_init(|| denied);
        }
        self.models.resolve(name, self.scope)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use pushdown::Pipeline;

    use super::*;
    use crate::access::Keys;

    fn scope(models: &str) -> ModelScope {
        let text = format!(
            "[[key]]\naccess-key = \"TESTVISION000001\"\nsecret = \"one-secret-of-a-test\"\nupstream = \"gateway\"\nmodels = {models}"
        );
        let keys = Keys::from_text(&text).unwrap();
        ModelScope::Key(keys.get("TESTVISION000001").unwrap())
    }

    fn parse(text: &str, scope: &ModelScope) -> Error {
        let models = ModelRegistry::new(None, 0).unwrap();
        let parse = |models: &dyn Resolver| Pipeline::parse_with(text, models);
        ScopedModels::parse(&models, scope, parse).unwrap_err()
    }

    fn denied(error: &Error) -> Option<&Denied> {
        error.source()?.downcast_ref()
    }

    #[test]
    fn a_denial_is_the_cause_of_the_error_and_no_part_of_its_message() {
        let no_model = Denied::NoModel("a".to_owned());
        for text in [
            "decode | to_float | normalize(model=a)",
            "decode | to_float | normalize(model=a) | normalize(model=b)",
        ] {
            let [granted, other, all] = [scope("[\"a\"]"), scope("[\"b\"]"), ModelScope::All];
            let [granted, other, all] = [granted, other, all].map(|scope| parse(text, &scope));
            assert_eq!(denied(&other), Some(&no_model), "{text}");
            assert_eq!(other.message(), granted.message());
            assert_eq!(other.kind(), granted.kind());
            assert_eq!((denied(&granted), denied(&all)), (None, None), "{text}");
        }
    }

    #[test]
    fn other_errors_of_a_pipeline_deny_nothing() {
        let error = parse("decode | nowhere", &scope("[]"));
        assert_eq!(denied(&error), None, "{error}");
    }

    /// The error of an inner pipeline is made anew by the step that contains it.
    #[cfg(feature = "tables")]
    #[test]
    fn a_model_is_denied_inside_of_a_step() {
        let error = parse(
            "select | each(photo: decode | to_float | normalize(model=a))",
            &scope("[]"),
        );
        assert_eq!(denied(&error), Some(&Denied::NoModel("a".to_owned())), "{error}");
    }
}
