//! Imports between the source files of a crate, from its `use` items and paths.
//!
//! The modules of a crate are read from its root file. An import is drawn to the file that defines
//! the name, through re-exports. What a macro expands to is not seen, and neither are calls of
//! methods, which need no import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::visit::Visit;

use crate::module_tree::{Definition, ModuleId, ModuleTree, is_for_tests, use_leaves};

/// Imports of one crate.
pub(crate) struct Imports {
    /// Source files of the crate, without tests.
    pub(crate) files: Vec<PathBuf>,
    /// For each file (index in `files`) the files that it imports from, with the names.
    pub(crate) edges: Vec<BTreeMap<usize, BTreeSet<String>>>,
}

impl Imports {
    /// Reads the crate or program whose root file is `root_file`.
    ///
    /// # Errors
    /// A file cannot be read or is not Rust.
    pub(crate) fn read(root_file: &Path) -> Result<Self> {
        let tree = ModuleTree::read(root_file, &read_source)?;
        let mut edges = vec![BTreeMap::<usize, BTreeSet<String>>::new(); tree.files.len()];
        for (id, items) in &tree.items {
            let mut references = References { tree: &tree, module: *id, targets: Vec::new() };
            for item in items {
                references.visit_item(item);
            }
            let from = tree.file_of(*id);
            for (to, name) in references.targets {
                if to != from {
                    edges[from].entry(to).or_default().insert(name);
                }
            }
        }
        Ok(Self { files: tree.files, edges })
    }
}

fn read_source(path: &Path) -> Result<syn::File> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    syn::parse_file(&text).with_context(|| format!("{} is not Rust", path.display()))
}

/// Collects the references of a module's items to definitions in other files.
struct References<'tree> {
    tree: &'tree ModuleTree,
    module: ModuleId,
    targets: Vec<(usize, String)>,
}

impl References<'_> {
    fn refer(&mut self, path: &[String]) {
        if let Some(Definition { file, name: Some(name) }) = self.tree.resolve(self.module, path) {
            self.targets.push((file, name));
        }
    }

    /// Paths in the arguments of a macro, such as `format!("{}", super::NAME)`.
    fn refer_in_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Punct(point) if point.as_char() == ':' => colons += 1,
                proc_macro2::TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.refer(&path);
                        path.clear();
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.refer(&path);
                    path.clear();
                    colons = 0;
                    if let proc_macro2::TokenTree::Group(group) = other {
                        self.refer_in_tokens(group.stream());
                    }
                }
            }
        }
        self.refer(&path);
    }
}

impl<'ast> Visit<'ast> for References<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        // Modules have items of their own in the tree.
        if !matches!(item, syn::Item::Mod(_)) && !is_for_tests(item) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_export = !matches!(item.vis, syn::Visibility::Inherited);
        for leaf in use_leaves(&item.tree) {
            let Some(Definition { file, name: Some(name) }) =
                self.tree.resolve(self.module, &leaf.path)
            else {
                continue;
            };
            if !(is_export && self.tree.is_below(file, self.module)) {
                self.targets.push((file, name));
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.refer(&names);
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.visit_path(&invocation.path);
        self.refer_in_tokens(invocation.tokens.clone());
    }
}
