//! Options of heads and attentions: each with its default and its reason, in one place.
//!
//! `options!` makes of a list of fields the struct, its defaults and its [`Options::KEYS`]. The
//! doc of a field is what `--help` shows of it.

/// Options of a variant; all have defaults.
pub trait Options: Default {
    /// The name of each field, what it is, and why its default is what it is.
    const KEYS: &'static [(&'static str, &'static str)];
}

/// A variant that can be asked for.
#[derive(Clone, Debug)]
pub struct Choice<C> {
    /// What it is called, after `head=` or `attention=`.
    pub word: &'static str,
    /// What it is.
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

/// A word and the number that tells variants of it apart: `fourier14`.
pub(crate) fn name(word: &str, size: Option<usize>) -> String {
    size.map_or_else(|| word.to_owned(), |size| format!("{word}{size}"))
}
