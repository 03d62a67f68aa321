//! The answer to `DeleteObjects`: an error for each denied key.

use super::list::ListedObject;
use crate::resign::xml::{NAMESPACE, push_element};
use crate::s3::errors::ACCESS_DENIED;

const ROOT: &str = "DeleteResult";

/// The answer if all keys are denied.
pub(super) fn document(denied: &[ListedObject]) -> String {
    let errors = errors(denied);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{ROOT} xmlns=\"{NAMESPACE}\">{errors}</{ROOT}>")
}

/// Adds the errors at the end of the store's answer. `None` if it is no `DeleteResult`.
pub(super) fn insert_errors(answer: &str, denied: &[ListedObject]) -> Option<String> {
    let answer = answer.trim_ascii_end();
    // The end of the root, since `<` occurs in tags only.
    let (before, tag) = answer.split_at(answer.rfind('<')?);
    let errors = errors(denied);
    if let Some(name) = tag.strip_prefix("</") {
        let name = name.strip_suffix('>')?.trim_ascii_end();
        return is_root(name).then(|| format!("{before}{errors}{tag}"));
    }
    let start = tag.strip_prefix('<')?.strip_suffix("/>")?;
    let name = start.split_ascii_whitespace().next()?;
    is_root(name).then(|| format!("{before}<{start}>{errors}</{name}>"))
}

fn errors(denied: &[ListedObject]) -> String {
    let mut xml = String::new();
    for object in denied {
        xml.push_str("<Error>");
        object.push_name(&mut xml);
        push_element(&mut xml, "Code", "AccessDenied");
        push_element(&mut xml, "Message", ACCESS_DENIED);
        xml.push_str("</Error>");
    }
    xml
}

fn is_root(name: &str) -> bool {
    name.rsplit(':').next() == Some(ROOT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resign::deletes::list::DeleteList;

    const ERRORS: &str = "<Error><Key>a&amp;b</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>\
         <Error><Key>c</Key><VersionId>1</VersionId><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";

    fn denied() -> Vec<ListedObject> {
        let list = "<Delete><Object><Key>a&amp;b</Key></Object>\
            <Object><Key>c</Key><VersionId>1</VersionId></Object></Delete>";
        DeleteList::parse(list).unwrap().objects
    }

    #[test]
    fn errors_are_added_at_the_end() {
        for (answer, expected) in [
            (
                "<DeleteResult><Deleted><Key>d</Key></Deleted></DeleteResult >\n",
                format!("<DeleteResult><Deleted><Key>d</Key></Deleted>{ERRORS}</DeleteResult >"),
            ),
            (
                "<?xml version=\"1.0\"?>\n<DeleteResult xmlns=\"x\"/>",
                format!("<?xml version=\"1.0\"?>\n<DeleteResult xmlns=\"x\">{ERRORS}</DeleteResult>"),
            ),
            (
                "<s3:DeleteResult></s3:DeleteResult>",
                format!("<s3:DeleteResult>{ERRORS}</s3:DeleteResult>"),
            ),
        ] {
            assert_eq!(insert_errors(answer, &denied()), Some(expected));
        }
        let alone = document(&denied());
        assert!(
            alone.ends_with(&format!("/2006-03-01/\">{ERRORS}</DeleteResult>")),
            "{alone}"
        );
    }

    #[test]
    fn other_answers_are_refused() {
        for answer in [
            "",
            "text",
            "<Error></Error>",
            "<Error/>",
            "<DeleteResult>",
            "<DeleteResult/> text",
            "<",
        ] {
            assert_eq!(insert_errors(answer, &denied()), None, "{answer}");
        }
    }
}
