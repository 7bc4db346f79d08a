//! A page as blocks. HTML and Markdown are rendered from the same blocks, so their contents agree.

use std::sync::Arc;

use overtone_eval::table::Table;

/// A part of a page. All text and all cells are plain text, which the renderers escape.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// The heading of a section.
    Heading(String),
    /// The heading of a subsection.
    Subheading(String),
    /// A paragraph.
    Text(String),
    /// The main result, shown in bold.
    Lead(String),
    /// Preformatted text: a command or a configuration.
    Code(String),
    /// A table.
    Table(Table),
    /// A table whose rows are grouped by this number of first columns.
    Groups(Table, usize),
    /// A picture.
    Plot {
        /// File name for the Markdown page, without ending. Contains only letters, digits and `-`.
        name: String,
        /// The caption.
        title: String,
        /// The picture.
        svg: String,
    },
    /// A moving picture.
    Video {
        /// File name for the Markdown page, without ending. Contains only letters, digits and `-`.
        name: String,
        /// The caption.
        title: String,
        /// The file's contents.
        gif: Arc<[u8]>,
    },
    /// A section that is shown on demand, with its summary.
    Fold(String, Vec<Block>),
}

impl Block {
    /// Name and contents of the block's picture file for the Markdown page.
    pub(super) fn picture(&self, stem: &str) -> Option<(String, &[u8])> {
        match self {
            Self::Plot { name, svg, .. } => Some((format!("{stem}-{name}.svg"), svg.as_bytes())),
            Self::Video { name, gif, .. } => Some((format!("{stem}-{name}.gif"), &gif[..])),
            _ => None,
        }
    }

    /// The picture files of this block and of all blocks inside it.
    pub(super) fn pictures(&self, stem: &str) -> Vec<(String, &[u8])> {
        match self {
            Self::Fold(_, blocks) => blocks.iter().flat_map(|block| block.pictures(stem)).collect(),
            block => block.picture(stem).into_iter().collect(),
        }
    }
}

/// A title and the blocks below it.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
}
