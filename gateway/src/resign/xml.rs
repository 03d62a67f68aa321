//! Strict reading and canonical writing of small S3 documents.
//!
//! The gateway writes anew what it has decided on, so that the store cannot read the document in another way.

use quick_xml::{Reader, escape::resolve_predefined_entity, events::Event};

/// The namespace of S3's documents.
pub(super) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// The document is not well-formed, or has other elements than expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Reads the elements of a document in their order. Prefixes and attributes are ignored.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    reader: Reader<&'a [u8]>,
    /// The number of open elements.
    depth: usize,
}

impl<'a> Elements<'a> {
    pub(super) fn new(document: &'a str) -> Self {
        let mut reader = Reader::from_str(document);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, depth: 0 }
    }

    /// Opens the next child of the open element, and returns its name. `None` closes the open element, which has no more
    /// children; at the top level, `None` is the end of the document.
    pub(super) fn child(&mut self) -> Result<Option<String>, Malformed> {
        loop {
            match self.next_event()? {
                Event::Start(element) => {
                    self.depth += 1;
                    let name = std::str::from_utf8(element.local_name().into_inner());
                    return name.map(|name| Some(name.to_owned())).map_err(|_| Malformed);
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(None);
                }
                Event::Eof if self.depth == 0 => return Ok(None),
                Event::Comment(_) | Event::Decl(_) => {}
                event => {
                    let text = text_of(&event).ok_or(Malformed)?;
                    if !text.bytes().all(is_white_space) {
                        return Err(Malformed);
                    }
                }
            }
        }
    }

    /// The text of the open element, which has no children. Closes it.
    pub(super) fn content(&mut self) -> Result<String, Malformed> {
        let mut content = String::new();
        loop {
            match self.next_event()? {
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    break;
                }
                Event::Comment(_) => {}
                event => content.push_str(&text_of(&event).ok_or(Malformed)?),
            }
        }
        if content.chars().all(is_xml_character) {
            Ok(content)
        } else {
            Err(Malformed)
        }
    }

    fn next_event(&mut self) -> Result<Event<'a>, Malformed> {
        self.reader.read_event().map_err(|_| Malformed)
    }
}

/// The text that an event adds to its element. `None` for other events, and for entities that XML does not define.
pub(super) fn text_of(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Text(text) => Some(text.xml10_content().ok()?.into_owned()),
        Event::CData(data) => Some(data.xml10_content().ok()?.into_owned()),
        Event::GeneralRef(reference) => {
            if let Some(character) = reference.resolve_char_ref().ok()? {
                return Some(character.to_string());
            }
            let name = reference.xml10_content().ok()?;
            resolve_predefined_entity(&name).map(str::to_owned)
        }
        _ => None,
    }
}

/// Appends an element with this text.
pub(super) fn push_element(xml: &mut String, name: &str, text: &str) {
    xml.push('<');
    xml.push_str(name);
    xml.push('>');
    for character in text.chars() {
        match character {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            // Readers would turn it into a line feed.
            '\r' => xml.push_str("&#13;"),
            _ => xml.push(character),
        }
    }
    xml.push_str("</");
    xml.push_str(name);
    xml.push('>');
}

const fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether XML 1.0 can express a character.
const fn is_xml_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of the only element of a document.
    fn content(document: &str) -> Result<String, Malformed> {
        let mut elements = Elements::new(document);
        assert_eq!(elements.child()?.as_deref(), Some("a"));
        let content = elements.content()?;
        assert_eq!(elements.child()?, None);
        Ok(content)
    }

    #[test]
    fn text_is_read_as_it_was_meant() {
        let read = |text: &str| content(&format!("<a>{text}</a>")).unwrap();
        assert_eq!(read(""), "");
        assert_eq!(read(" x\ty "), " x\ty ");
        assert_eq!(read("a&amp;b&lt;&#x43;&#68;"), "a&b<CD");
        assert_eq!(read("a<!-- no --><![CDATA[<b>&amp;]]>c"), "a<b>&amp;c");
        assert_eq!(read("a\r\nb&#13;c"), "a\nb\rc");
        assert_eq!(
            content("<?xml version=\"1.0\"?>\n<x:a xmlns:x=\"y\"/>\n").unwrap(),
            ""
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = " a&b<c>d\"e'f\r\n\t\u{e9}\u{10ffff} ";
        let mut xml = String::new();
        push_element(&mut xml, "a", text);
        assert_eq!(content(&xml).unwrap(), text);
    }

    #[test]
    fn malformed_documents_are_refused() {
        for document in [
            "<a>",
            "<a>x</b>",
            "<a>x & y</a>",
            "<a>&nbsp;</a>",
            "<a>&#1;</a>",
            "<a>\u{1}</a>",
            "<a>\u{ffff}</a>",
            "<a><b/></a>",
            "<a><?b?></a>",
            "<a>x</a>y",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
            "<!DOCTYPE a><a>x</a>",
        ] {
            let mut elements = Elements::new(document);
            let mut read = || {
                elements.child()?;
                elements.content()?;
                elements.child()
            };
            assert_eq!(read(), Err(Malformed), "{document}");
        }
    }
}
