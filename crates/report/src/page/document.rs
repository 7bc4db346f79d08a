//! A page as blocks, rendered as HTML and as Markdown: the two cannot tell different things.

use std::sync::Arc;

use overtone_eval::table::Table;

/// A part of a page. Words and cells are plain text in which nothing is markup: the renderers
/// escape them.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// A section's heading.
    Heading(String),
    /// A smaller one.
    Subheading(String),
    /// A paragraph.
    Text(String),
    /// The sentence that a page is opened for.
    Lead(String),
    /// What a computer reads.
    Code(String),
    /// A table.
    Table(Table),
    /// A table of which rows that are the same in so many first columns are a group.
    Groups(Table, usize),
    /// A picture.
    Plot {
        /// Its file's name beside a Markdown page, without the ending: of letters and `-`.
        name: String,
        /// What it shows.
        title: String,
        /// The picture.
        svg: String,
    },
    /// A moving picture.
    Video {
        /// Its file's name beside a Markdown page, without the ending: of letters and `-`.
        name: String,
        /// What it shows.
        title: String,
        /// The file.
        gif: Arc<[u8]>,
    },
    /// What is shown on demand.
    Fold(String, Vec<Block>),
}

impl Block {
    /// Name and contents of the file that holds the block's picture beside a Markdown page.
    pub(super) fn picture(&self, stem: &str) -> Option<(String, &[u8])> {
        match self {
            Self::Plot { name, svg, .. } => Some((format!("{stem}-{name}.svg"), svg.as_bytes())),
            Self::Video { name, gif, .. } => Some((format!("{stem}-{name}.gif"), &gif[..])),
            _ => None,
        }
    }

    /// The same of all blocks in it, of it itself too.
    pub(super) fn pictures(&self, stem: &str) -> Vec<(String, &[u8])> {
        match self {
            Self::Fold(_, blocks) => blocks.iter().flat_map(|block| block.pictures(stem)).collect(),
            block => block.picture(stem).into_iter().collect(),
        }
    }
}

/// A title and what is below it.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
}
