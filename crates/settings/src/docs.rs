//! [`Docs`]: help by key, from the docs of fields.

use documented::DocumentedFields;

/// Help by key.
pub type Docs = Vec<(String, &'static str)>;

/// The help of a section's keys, from the docs of its fields.
pub fn section<T: DocumentedFields>(name: &str) -> Docs {
    let dot = if name.is_empty() { "" } else { "." };
    let fields = T::FIELD_NAMES.iter().zip(T::FIELD_DOCS);
    fields.map(|(field, doc)| (format!("{name}{dot}{field}"), *doc)).collect()
}
