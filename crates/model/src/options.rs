//! Options of heads, attentions and commands: each with its default and its reason in one place.

/// Options of a variant or of a command; each has a default.
pub trait Options: Default {
    /// The name of each field, its meaning, and the reason for its default.
    const KEYS: &'static [(&'static str, &'static str)];
}

/// A selectable variant.
#[derive(Clone, Debug)]
pub struct Choice<C> {
    /// Its name, after `head=` or `attention=`.
    pub word: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Its [options](Options::KEYS).
    pub keys: &'static [(&'static str, &'static str)],
    /// The variant with its defaults.
    pub config: C,
}

impl<C> Choice<C> {
    pub(crate) fn new<O: Options>(
        word: &'static str,
        about: &'static str,
        config: impl FnOnce(O) -> C,
    ) -> Self {
        Self { word, about, keys: O::KEYS, config: config(O::default()) }
    }
}

/// A struct of options from a list of fields, with their defaults and their
/// [`KEYS`](crate::options::Options::KEYS). `--help` shows the doc of a field.
#[macro_export]
macro_rules! options {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $doc:literal])* pub $field:ident: $type:ty = $default:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[doc = $doc])* pub $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::options::Options for $name {
            const KEYS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($doc),*)),)*];
        }
    };
}

/// A word and the number that distinguishes its variants: `fourier14`.
pub(crate) fn name(word: &str, size: Option<usize>) -> String {
    size.map_or_else(|| word.to_owned(), |size| format!("{word}{size}"))
}
