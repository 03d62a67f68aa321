//! The secrets of a key: in the keys file, in a file of their own, or in an environment variable.

use std::path::Path;

use super::fields::Fields;
use crate::access::Secret;
use crate::private;

/// Most bytes of a file with one secret.
const MAX_SECRET_BYTES: u64 = 4096;
/// Fewest characters of access keys and secrets.
pub(super) const MIN_CHARACTERS: usize = 16;

/// Access keys and secrets of documentation and of stores just installed, which anyone may try. Those that end with `EXAMPLE`
/// or `EXAMPLEKEY` count, too.
const WELL_KNOWN: [&str; 9] = [
    "minioadmin",
    "minioadminminioadmin",
    "rustfsadmin",
    "some_access_key1",
    "some_secret_key1",
    "local-identity",
    "local-credential",
    "0555b35654ad1656d804",
    "h7GhxuBLTrlhVUyxSPUKUV8r/2EI4ngqJxD7iBdBYLhwluN30JaT3Q==",
];

/// Where secrets outside of the keys file are.
pub(super) struct SecretSources<'a> {
    /// Folder of relative paths.
    pub(super) folder: &'a Path,
    /// The value of an environment variable.
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
}

/// The fields that may hold a secret. A key has one of them.
struct SecretFields {
    text: &'static str,
    file: &'static str,
    variable: &'static str,
}

const CURRENT: SecretFields = SecretFields {
    text: "secret",
    file: "secret-file",
    variable: "secret-env",
};

const PREVIOUS: SecretFields = SecretFields {
    text: "previous-secret",
    file: "previous-secret-file",
    variable: "previous-secret-env",
};

/// Whether an access key or a secret is known to everyone.
pub(super) fn is_well_known(text: &str) -> bool {
    WELL_KNOWN.iter().any(|known| known.eq_ignore_ascii_case(text))
        || text.ends_with("EXAMPLE")
        || text.ends_with("EXAMPLEKEY")
}

/// Takes the secrets of a key: the current one, and the previous one if there is one.
pub(super) fn take(fields: &mut Fields, sources: &SecretSources<'_>) -> Vec<Secret> {
    if CURRENT.count(fields) == 0 {
        fields.fault("missing secret, secret-file or secret-env");
    }
    let current = CURRENT.take(fields, sources);
    let previous = PREVIOUS.take(fields, sources);
    if current.is_some() && current == previous {
        fields.fault("the previous secret is the current one: expected two secrets");
    }
    current.into_iter().chain(previous).collect()
}

impl SecretFields {
    /// How many of the fields are there.
    fn count(&self, fields: &Fields) -> usize {
        let names = [self.text, self.file, self.variable];
        names.into_iter().filter(|name| fields.has(name)).count()
    }

    fn take(&self, fields: &mut Fields, sources: &SecretSources<'_>) -> Option<Secret> {
        let count = self.count(fields);
        let text = fields.text(self.text).map(Secret::new);
        let path = fields.text(self.file);
        let variable = fields.text(self.variable);
        if count > 1 {
            let (text, file, variable) = (self.text, self.file, self.variable);
            fields.fault(format_args!(
                "expected one of {text}, {file} and {variable}, found {count}"
            ));
            return None;
        }
        let (name, secret) = if let Some(secret) = text {
            (self.text, secret)
        } else if let Some(path) = path {
            let path = sources.folder.join(path);
            (self.file, read_secret(self.file, &path, fields)?)
        } else {
            let variable = variable?;
            let Some(value) = (sources.environment)(&variable) else {
                let name = self.variable;
                fields.fault(format_args!(
                    "{name}: the environment variable `{variable}` is not set"
                ));
                return None;
            };
            (self.variable, Secret::new(value))
        };
        if let Err(fault) = check(&secret) {
            fields.fault(format_args!("{name}: {fault}"));
        }
        Some(secret)
    }
}

/// Reads a file with one secret, without the newline that an editor adds.
fn read_secret(name: &str, path: &Path, fields: &mut Fields) -> Option<Secret> {
    let shown = path.display();
    match private::file::read(path, MAX_SECRET_BYTES) {
        Ok(file) => {
            if let Some(fault) = file.mode_fault {
                fields.fault(format_args!("{name} {shown}: {fault}"));
            }
            Some(Secret::new(file.text.trim_end_matches(['\r', '\n']).to_owned()))
        }
        Err(error) => {
            fields.fault(format_args!("{name} {shown}: {error}"));
            None
        }
    }
}

fn check(secret: &Secret) -> Result<(), String> {
    let text = std::str::from_utf8(secret.as_bytes()).unwrap_or_default();
    if is_well_known(text) {
        return Err("it is a well-known example: make one with `pushdown-gateway keys new`".to_owned());
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("expected printable ASCII without spaces".to_owned());
    }
    if text.len() < MIN_CHARACTERS {
        return Err(format!(
            "expected at least {MIN_CHARACTERS} characters, found {}",
            text.len()
        ));
    }
    Ok(())
}
