//! Lists the objects of a bucket in the order of their keys. Only names are read, and of the objects of a page their attributes.

use std::{
    fs::{self, DirEntry},
    io,
    path::Path,
    vec,
};

use super::{
    attributes::{Attributes, is_missing},
    folder_access::is_below,
};

/// Which part of a listing is asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct PageRequest {
    pub(super) bucket: String,
    pub(super) prefix: String,
    /// Keys that have it after the prefix are listed as their common prefixes up to its end.
    pub(super) delimiter: Option<String>,
    /// Only what comes after it in the order of keys.
    pub(super) after: String,
    /// The most entries.
    pub(super) max_entries: usize,
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Object(String, Attributes),
    CommonPrefix(String),
}

/// A part of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) entries: Vec<Entry>,
    /// Whether more entries follow.
    pub(super) is_truncated: bool,
}

/// A walk through the folders of a bucket.
struct Walk<'a> {
    root: &'a Path,
    request: &'a PageRequest,
    /// The common prefix whose keys are left out, because it has its entry already.
    done: Option<String>,
    page: Page,
}

/// A name in a folder, as the end of a key: a folder ends with `/`.
struct Name {
    text: String,
    entry: DirEntry,
}

impl Entry {
    /// The key, or the common prefix.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Object(name, _) | Self::CommonPrefix(name) => name,
        }
    }
}

/// A page of the objects in a bucket.
///
/// # Errors
/// If a folder cannot be read.
pub(super) fn list(root: &Path, request: &PageRequest) -> io::Result<Page> {
    let mut walk = Walk {
        root,
        request,
        done: None,
        page: Page::default(),
    };
    // After a common prefix, the keys that it stands for are listed.
    walk.done = walk
        .common_prefix(&request.after)
        .filter(|prefix| *prefix == request.after);
    walk.run()?;
    Ok(walk.page)
}

impl Walk<'_> {
    fn run(&mut self) -> io::Result<()> {
        let bucket = self.root.join(&self.request.bucket);
        let mut folders: Vec<(String, vec::IntoIter<Name>)> = vec![(String::new(), names(&bucket)?)];
        while let Some((folder, names_left)) = folders.last_mut() {
            let Some(Name { text, entry }) = names_left.next() else {
                folders.pop();
                continue;
            };
            let key = format!("{folder}{text}");
            if !key.ends_with('/') {
                if self.add(key, &entry.path())? {
                    return Ok(());
                }
            } else if self.may_contain(&key) {
                if self.add(key.clone(), &entry.path())? {
                    return Ok(());
                }
                if self.may_contain(&key) {
                    folders.push((key, names(&entry.path())?));
                }
            }
        }
        Ok(())
    }

    /// Whether a folder may contain keys that are asked for.
    fn may_contain(&self, folder: &str) -> bool {
        let PageRequest { prefix, after, .. } = self.request;
        let has_prefix = folder.starts_with(prefix.as_str()) || prefix.starts_with(folder);
        let is_after = after.as_str() < folder || after.starts_with(folder);
        let is_done = self
            .done
            .as_ref()
            .is_some_and(|done| folder.starts_with(done.as_str()));
        has_prefix && is_after && !is_done
    }

    /// Adds the entry of an object, if it is asked for. Returns whether the page is complete.
    fn add(&mut self, key: String, path: &Path) -> io::Result<bool> {
        let PageRequest {
            bucket,
            prefix,
            after,
            max_entries,
            ..
        } = self.request;
        let is_done = |done: &String| key.starts_with(done.as_str());
        if !key.starts_with(prefix.as_str()) || key <= *after || self.done.as_ref().is_some_and(is_done) {
            return Ok(false);
        }
        let Some(attributes) = self.attributes(bucket, &key, path)? else {
            return Ok(false);
        };
        if self.page.entries.len() >= *max_entries {
            self.page.is_truncated = *max_entries > 0;
            return Ok(true);
        }
        let common_prefix = self.common_prefix(&key);
        self.page.entries.push(match &common_prefix {
            Some(common) => Entry::CommonPrefix(common.clone()),
            None => Entry::Object(key, attributes),
        });
        if common_prefix.is_some() {
            self.done = common_prefix;
        }
        Ok(false)
    }

    /// The attributes of an object; `None` for what no request reads.
    fn attributes(&self, bucket: &str, key: &str, path: &Path) -> io::Result<Option<Attributes>> {
        let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        if is_link && !is_below(self.root, path) {
            return Ok(None);
        }
        Attributes::read(self.root, bucket, key)
    }

    /// What stands for a key in a listing with a delimiter.
    fn common_prefix(&self, key: &str) -> Option<String> {
        let delimiter = self.request.delimiter.as_deref()?;
        let rest = key.strip_prefix(self.request.prefix.as_str())?;
        let end = key.len() - rest.len() + rest.find(delimiter)? + delimiter.len();
        Some(key[..end].to_owned())
    }
}

/// The names in a folder, in the order of the keys that begin with them. Those that are no text, and no keys therefore, are left out.
fn names(folder: &Path) -> io::Result<vec::IntoIter<Name>> {
    let mut names = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // Removed since it was seen.
        Err(error) if is_missing(&error) => return Ok(names.into_iter()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let Ok(mut text) = entry.file_name().into_string() else {
            continue;
        };
        // A link to a folder is left out: it may lead into a circle.
        if entry.file_type()?.is_dir() {
            text.push('/');
        }
        names.push(Name { text, entry });
    }
    names.sort_unstable_by(|one, other| one.text.cmp(&other.text));
    Ok(names.into_iter())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::embedded::attributes::mark_folder;

    /// A bucket `b` with these objects; those that end with `/` are marked folders.
    fn bucket(keys: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let bucket = folder.path().join("b");
        fs::create_dir(&bucket).unwrap();
        for key in keys {
            let path = bucket.join(key);
            if key.ends_with('/') {
                fs::create_dir_all(path).unwrap();
                mark_folder(folder.path(), "b", key).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, key).unwrap();
            }
        }
        folder
    }

    fn request(prefix: &str, delimiter: Option<&str>) -> PageRequest {
        PageRequest {
            bucket: "b".to_owned(),
            prefix: prefix.to_owned(),
            delimiter: delimiter.map(str::to_owned),
            after: String::new(),
            max_entries: 1000,
        }
    }

    fn listed(root: &Path, request: &PageRequest) -> Vec<String> {
        let page = list(root, request).unwrap();
        assert!(!page.is_truncated);
        page.entries.iter().map(|entry| entry.name().to_owned()).collect()
    }

    /// All entries by pages of every size, each after the last entry of the one before.
    fn paged(root: &Path, request: &PageRequest) -> Vec<String> {
        let whole = listed(root, request);
        for max_entries in 1..=whole.len() + 1 {
            let mut entries = Vec::new();
            let mut request = PageRequest {
                max_entries,
                ..request.clone()
            };
            loop {
                let page = list(root, &request).unwrap();
                entries.extend(page.entries.iter().map(|entry| entry.name().to_owned()));
                if !page.is_truncated {
                    break;
                }
                assert_eq!(page.entries.len(), max_entries);
                request.after = entries.last().unwrap().clone();
            }
            assert_eq!(entries, whole, "pages of {max_entries}");
        }
        whole
    }

    const KEYS: [&str; 9] = ["a", "b-1", "b.d", "b/", "b/1", "b/c/2", "b/c/3", "b0", "d--e--f"];

    #[test]
    fn keys_are_in_the_order_of_their_bytes() {
        let folder = bucket(&KEYS);
        assert_eq!(paged(folder.path(), &request("", None)), KEYS);
        assert_eq!(paged(folder.path(), &request("b/c", None)), ["b/c/2", "b/c/3"]);
        assert_eq!(paged(folder.path(), &request("b/c/2", None)), ["b/c/2"]);
        assert_eq!(paged(folder.path(), &request("b", None)).len(), 7);
        assert_eq!(paged(folder.path(), &request("none", None)), [""; 0]);
        assert_eq!(paged(folder.path(), &request("/a", None)), [""; 0]);
    }

    #[test]
    fn a_delimiter_groups_keys() {
        let folder = bucket(&KEYS);
        let root = folder.path();
        assert_eq!(
            paged(root, &request("", Some("/"))),
            ["a", "b-1", "b.d", "b/", "b0", "d--e--f"]
        );
        assert_eq!(paged(root, &request("b/", Some("/"))), ["b/", "b/1", "b/c/"]);
        assert_eq!(paged(root, &request("b", Some("/"))), ["b-1", "b.d", "b/", "b0"]);
        assert_eq!(paged(root, &request("d", Some("--"))), ["d--"]);
        assert_eq!(paged(root, &request("d--", Some("--"))), ["d--e--"]);
        assert_eq!(paged(root, &request("b/c", Some("c/"))), ["b/c/2", "b/c/3"]);
        let after = |after: &str| {
            let request = PageRequest {
                after: after.to_owned(),
                ..request("", Some("/"))
            };
            listed(root, &request)
        };
        assert_eq!(after("b/"), ["b0", "d--e--f"]);
        assert_eq!(after("b/1"), ["b/", "b0", "d--e--f"], "keys of the group follow");
        assert_eq!(after("b/c/3"), ["b0", "d--e--f"]);
    }

    #[test]
    fn folders_without_objects_and_links_out_of_the_store_are_not_listed() {
        let folder = bucket(&["a", "c/1"]);
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        let bucket = folder.path().join("b");
        fs::create_dir_all(bucket.join("empty/below")).unwrap();
        symlink(outside.path().join("secret"), bucket.join("out")).unwrap();
        symlink(outside.path(), bucket.join("out-folder")).unwrap();
        symlink("c", bucket.join("folder")).unwrap();
        symlink("c/1", bucket.join("within")).unwrap();
        symlink("nothing", bucket.join("broken")).unwrap();
        let root = folder.path().canonicalize().unwrap();
        assert_eq!(listed(&root, &request("", None)), ["a", "c/1", "within"]);
        assert_eq!(listed(&root, &request("", Some("/"))), ["a", "c/", "within"]);
    }

    #[test]
    fn no_entries_are_asked_for() {
        let folder = bucket(&["a"]);
        let request = PageRequest {
            max_entries: 0,
            ..request("", None)
        };
        assert_eq!(list(folder.path(), &request).unwrap(), Page::default());
    }
}
