//! From the text of a keys file to checked keys.

use std::collections::{BTreeMap, BTreeSet};

use toml::Table;

use super::fields::Fields;
use super::secrets::{self, MIN_CHARACTERS, SecretSources};
use crate::access::grant::{BucketScope, Grant};
use crate::access::grants::Grants;
use crate::access::key::{KeySettings, ModelNames, Upstream};
use crate::access::{Action, names};

/// Most characters of access keys and names of tenants.
const MAX_CHARACTERS: usize = 128;

/// Reads all keys of a text, and adds all its faults to `faults`. The keys are only complete if there are none.
pub(super) fn parse(text: &str, sources: &SecretSources<'_>, faults: &mut Vec<String>) -> Vec<KeySettings> {
    let table: Table = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => {
            faults.push(syntax_fault(text, &error));
            return Vec::new();
        }
    };
    let mut fields = Fields::new(table);
    let has_keys = fields.has("key");
    let tables = fields.tables("key");
    if !has_keys || tables.as_ref().is_some_and(Vec::is_empty) {
        fields.fault("no keys: expected a [[key]] table; make one with `pushdown-gateway keys new`");
    }
    fields.finish("", faults);
    let mut numbers = BTreeMap::new();
    let mut keys = Vec::new();
    for (number, table) in (1..).zip(tables.unwrap_or_default()) {
        keys.extend(key(table, number, &mut numbers, sources, faults));
    }
    keys
}

/// The error without the line that it is about, which may hold a secret.
fn syntax_fault(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.split('\n').count()),
        None => message.to_owned(),
    }
}

/// Reads the key with this number in the file. `numbers` has the numbers of earlier keys by their access keys.
fn key(
    table: Table,
    number: usize,
    numbers: &mut BTreeMap<String, usize>,
    sources: &SecretSources<'_>,
    faults: &mut Vec<String>,
) -> Option<KeySettings> {
    let mut fields = Fields::new(table);
    let access_key = fields.required("access-key", access_key);
    let secrets = secrets::take(&mut fields, sources);
    let mut place = format!("key {number}");
    if let Some(access_key) = &access_key {
        place = format!("{place} ({access_key})");
        if let Some(earlier) = numbers.insert(access_key.clone(), number) {
            fields.fault(format_args!(
                "access-key: it is the access key of key {earlier}, too"
            ));
        }
        if secrets
            .iter()
            .any(|secret| secret.as_bytes() == access_key.as_bytes())
        {
            fields.fault("the secret is the access key: expected two texts");
        }
    }
    let tenant = fields.parsed("tenant", tenant);
    let upstream = fields.required("upstream", str::parse::<Upstream>);
    let models = models(&mut fields);
    let tables = fields.tables("grant").unwrap_or_default();
    fields.finish(&place, faults);
    let mut grants = Vec::new();
    for (number, table) in (1..).zip(tables) {
        grants.extend(grant(table, &format!("{place}, grant {number}"), faults));
    }
    let (access_key, upstream) = (access_key?, upstream?);
    // Grants narrow everything that a key may do, its models included.
    let default_models = if upstream == Upstream::Caller && grants.is_empty() {
        ModelNames::All
    } else {
        ModelNames::Named(BTreeSet::new())
    };
    Some(KeySettings {
        tenant: tenant.unwrap_or_else(|| access_key.clone()),
        access_key,
        secrets,
        upstream,
        grants: Grants::new(grants),
        models: models.unwrap_or(default_models),
    })
}

/// A fault does not show the text: a secret may have been put into the wrong field.
fn access_key(text: &str) -> Result<String, String> {
    if secrets::is_well_known(text) {
        return Err(format!(
            "`{text}` is a well-known example: make one with `pushdown-gateway keys new`"
        ));
    }
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !text.bytes().all(is_valid) {
        return Err("expected letters, digits, `.`, `_` and `-`, found others".to_owned());
    }
    if !(MIN_CHARACTERS..=MAX_CHARACTERS).contains(&text.len()) {
        return Err(format!(
            "expected {MIN_CHARACTERS} to {MAX_CHARACTERS} characters, found {}",
            text.len()
        ));
    }
    Ok(text.to_owned())
}

fn tenant(text: &str) -> Result<String, String> {
    let characters = text.chars().count();
    if !(1..=MAX_CHARACTERS).contains(&characters) {
        return Err(format!(
            "expected 1 to {MAX_CHARACTERS} characters, found {characters}"
        ));
    }
    if text.chars().any(char::is_control) {
        return Err("expected no control characters".to_owned());
    }
    Ok(text.to_owned())
}

fn models(fields: &mut Fields) -> Option<ModelNames> {
    let names = fields.texts("models")?;
    if names == ["*"] {
        return Some(ModelNames::All);
    }
    if names.iter().any(|name| name.is_empty() || name.contains('*')) {
        fields.fault("models: expected names of models, or `*` alone for all of them");
    }
    Some(ModelNames::Named(names.into_iter().collect()))
}

fn grant(table: Table, place: &str, faults: &mut Vec<String>) -> Option<Grant> {
    let mut fields = Fields::new(table);
    let bucket = fields.required("bucket", bucket);
    let prefix = fields.parsed("prefix", prefix).unwrap_or_default();
    let allow = actions(&mut fields);
    let pipelines = fields.flag("pipelines").unwrap_or_default();
    if pipelines && !allow.is_empty() && !allow.contains(&Action::Read) {
        fields.fault("pipelines: expected `read` in allow, too: a pipeline reads its object");
    }
    fields.finish(place, faults);
    Some(Grant {
        bucket: bucket?,
        prefix,
        allow,
        pipelines,
    })
}

fn bucket(text: &str) -> Result<BucketScope, String> {
    match text {
        "*" => Ok(BucketScope::All),
        name if names::is_bucket_name(name.as_bytes()) => Ok(BucketScope::Named(name.to_owned())),
        other => Err(format!(
            "expected the name of a bucket, or `*` for all, found `{other}`"
        )),
    }
}

fn prefix(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        return Err(format!(
            "expected no slash at the start, found `{text}`: keys have none"
        ));
    }
    if text.contains('*') || names::is_unsafe_key(text.as_bytes()) {
        return Err(format!(
            "expected a plain prefix without `*` and without segments `.` and `..`, found `{text}`"
        ));
    }
    if !text.is_empty() && !text.ends_with('/') {
        return Err(format!(
            "expected a slash at the end, found `{text}`: it would cover `{text}-secret/`, too"
        ));
    }
    Ok(text.to_owned())
}

fn actions(fields: &mut Fields) -> BTreeSet<Action> {
    if !fields.has("allow") {
        fields.fault("missing allow");
    }
    let Some(texts) = fields.texts("allow") else {
        return BTreeSet::new();
    };
    if texts.is_empty() {
        fields.fault("allow: expected at least one action, found none");
    }
    let mut actions = BTreeSet::new();
    for text in texts {
        match text.parse::<Action>() {
            Ok(action) => {
                actions.insert(action);
            }
            Err(fault) => fields.fault(format_args!("allow: {fault}")),
        }
    }
    actions
}
