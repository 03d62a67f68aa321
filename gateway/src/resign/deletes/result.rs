//! The answer to `DeleteObjects`: an error for each denied key.

use pushdown_s3::xml::{NAMESPACE, TextForm, push_element};

use super::list::ListedObject;
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

/// The store's answer with the same message for each denial: its own can name the gateway's identity.
pub(super) fn mask_denials(answer: &str) -> String {
    const CODE: &str = "<Code>AccessDenied</Code>";
    const START: &str = "<Message>";
    let (mut masked, mut rest) = (String::with_capacity(answer.len()), answer);
    while let Some(end) = rest.find("</Error>") {
        let (error, after) = rest.split_at(end);
        let message = error.find(START).map(|start| start + START.len());
        let message = message.and_then(|start| Some(start..start + error[start..].find("</Message>")?));
        match message.filter(|_| error.contains(CODE)) {
            Some(message) => masked.extend([&error[..message.start], ACCESS_DENIED, &error[message.end..]]),
            None => masked.push_str(error),
        }
        let (tag, after) = after.split_at("</Error>".len());
        masked.push_str(tag);
        rest = after;
    }
    masked + rest
}

fn errors(denied: &[ListedObject]) -> String {
    let mut xml = String::new();
    for object in denied {
        xml.push_str("<Error>");
        object.push_name(&mut xml);
        push_element(&mut xml, "Code", "AccessDenied", TextForm::Exact);
        push_element(&mut xml, "Message", ACCESS_DENIED, TextForm::Exact);
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
    fn denials_do_not_name_the_identity() {
        let error = |code: &str, message: &str| {
            format!("<Error><Key>a</Key><Code>{code}</Code><Message>{message}</Message></Error>")
        };
        let arn = "User: arn:aws:iam::1:user/g is not authorized";
        let slow = error("SlowDown", "Please reduce your request rate.");
        let answer = format!(
            "<DeleteResult>{}{slow}{}</DeleteResult>",
            error("AccessDenied", arn),
            error("AccessDenied", arn)
        );
        let denial = error("AccessDenied", ACCESS_DENIED);
        assert_eq!(
            mask_denials(&answer),
            format!("<DeleteResult>{denial}{slow}{denial}</DeleteResult>")
        );
        for unchanged in ["<DeleteResult/>", "<Error><Message>x", "<Error></Error>"] {
            assert_eq!(mask_denials(unchanged), unchanged);
        }
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
