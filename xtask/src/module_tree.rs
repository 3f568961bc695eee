//! Modules of a crate with the names that they define and import.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use syn::parse::Parser;

/// Longest chain of re-exports that is followed. A longer one is a cycle.
const RE_EXPORTS_MAX: usize = 16;

/// Index of a module in [`ModuleTree::modules`].
pub(crate) type ModuleId = usize;

/// Reads and parses a source file.
type Source<'source> = &'source dyn Fn(&Path) -> Result<syn::File>;

/// Modules of a crate, without those for tests.
pub(crate) struct ModuleTree {
    /// Source files of the crate.
    pub(crate) files: Vec<PathBuf>,
    /// Items of each module, without its submodules.
    pub(crate) items: Vec<(ModuleId, Vec<syn::Item>)>,
    modules: Vec<Module>,
}

/// Item or module that a Rust path resolves to.
pub(crate) struct Definition {
    /// Index of the file in [`ModuleTree::files`].
    pub(crate) file: usize,
    /// Name of the item; `None` if the path leads to a module.
    pub(crate) name: Option<String>,
}

#[derive(Default)]
struct Module {
    parent: Option<ModuleId>,
    file: usize,
    children: BTreeMap<String, ModuleId>,
    /// Names of items that are defined here.
    defined: Vec<String>,
    /// Names that `use` brings into this module, with their paths.
    imported: BTreeMap<String, Vec<String>>,
    /// Paths of modules whose names are all imported.
    globs: Vec<Vec<String>>,
    /// Modules of this crate that `globs` lead to.
    glob_modules: Vec<ModuleId>,
}

/// One name of a `use` item.
pub(crate) struct UseLeaf {
    /// Path from the module that contains the item.
    pub(crate) path: Vec<String>,
    /// Name in the importing module; `None` for `*`.
    alias: Option<String>,
}

enum Target {
    Module(ModuleId),
    Item(ModuleId, String),
}

impl ModuleTree {
    /// Reads all modules that are declared from `root_file` on.
    pub(crate) fn read(root_file: &Path, source: Source<'_>) -> Result<Self> {
        let mut tree = Self { files: Vec::new(), items: Vec::new(), modules: Vec::new() };
        let folder = root_file.parent().unwrap_or(Path::new("")).to_owned();
        tree.add_file(None, root_file, &folder, source)?;
        // The second time also finds paths that begin with a name of another glob.
        tree.resolve_globs();
        tree.resolve_globs();
        Ok(tree)
    }

    fn resolve_globs(&mut self) {
        for id in 0..self.modules.len() {
            let paths = self.modules[id].globs.iter();
            let targets = paths.filter_map(|path| match self.target(id, path, 0)? {
                Target::Module(from) => (from != id).then_some(from),
                Target::Item(..) => None,
            });
            self.modules[id].glob_modules = targets.collect();
        }
    }

    /// Adds the module in `path`, whose submodules are in `folder`.
    fn add_file(
        &mut self,
        parent: Option<ModuleId>,
        path: &Path,
        folder: &Path,
        source: Source<'_>,
    ) -> Result<ModuleId> {
        let items = source(path)?.items;
        self.files.push(path.to_owned());
        self.add_module(parent, self.files.len() - 1, items, folder, source)
    }

    fn add_module(
        &mut self,
        parent: Option<ModuleId>,
        file: usize,
        items: Vec<syn::Item>,
        folder: &Path,
        source: Source<'_>,
    ) -> Result<ModuleId> {
        let id = self.modules.len();
        self.modules.push(Module { parent, file, ..Module::default() });
        let mut module_items = Vec::new();
        for item in items.into_iter().filter(|item| !is_for_tests(item)) {
            match item {
                syn::Item::Mod(module) => self.add_child(id, module, folder, source)?,
                item => {
                    self.define(id, &item);
                    module_items.push(item);
                }
            }
        }
        self.items.push((id, module_items));
        Ok(id)
    }

    fn add_child(
        &mut self,
        parent: ModuleId,
        module: syn::ItemMod,
        folder: &Path,
        source: Source<'_>,
    ) -> Result<()> {
        let name = module.ident.to_string();
        let child_folder = folder.join(&name);
        let child = if let Some((_, items)) = module.content {
            let file = self.modules[parent].file;
            self.add_module(Some(parent), file, items, &child_folder, source)?
        } else {
            let candidates = [folder.join(format!("{name}.rs")), child_folder.join("mod.rs")];
            let Some(path) = candidates.into_iter().find(|path| path.is_file()) else {
                return Ok(());
            };
            self.add_file(Some(parent), &path, &child_folder, source)?
        };
        self.modules[parent].children.insert(name, child);
        Ok(())
    }

    fn define(&mut self, id: ModuleId, item: &syn::Item) {
        let module = &mut self.modules[id];
        let name = match item {
            syn::Item::Const(item) => &item.ident,
            syn::Item::Enum(item) => &item.ident,
            syn::Item::Fn(item) => &item.sig.ident,
            syn::Item::Static(item) => &item.ident,
            syn::Item::Struct(item) => &item.ident,
            syn::Item::Trait(item) => &item.ident,
            syn::Item::TraitAlias(item) => &item.ident,
            syn::Item::Type(item) => &item.ident,
            syn::Item::Union(item) => &item.ident,
            syn::Item::Macro(syn::ItemMacro { ident: Some(ident), .. }) => ident,
            syn::Item::Use(item) => {
                for leaf in use_leaves(&item.tree) {
                    match leaf.alias {
                        Some(alias) => {
                            module.imported.insert(alias, leaf.path);
                        }
                        None => module.globs.push(leaf.path),
                    }
                }
                return;
            }
            _ => return,
        };
        module.defined.push(name.to_string());
    }

    /// Returns the file of a module.
    pub(crate) fn file_of(&self, module: ModuleId) -> usize {
        self.modules[module].file
    }

    /// Returns true if a module of `file` is below `module`.
    pub(crate) fn is_below(&self, file: usize, module: ModuleId) -> bool {
        let first = self.modules.iter().find(|candidate| candidate.file == file);
        let mut ancestor = first.and_then(|module| module.parent);
        while let Some(id) = ancestor {
            if id == module {
                return true;
            }
            ancestor = self.modules[id].parent;
        }
        false
    }

    /// Follows a path from `module` to the file with its definition. `None`: another crate, a local
    /// name or a name that a macro defines.
    pub(crate) fn resolve(&self, module: ModuleId, path: &[String]) -> Option<Definition> {
        Some(match self.target(module, path, 0)? {
            Target::Module(id) => Definition { file: self.modules[id].file, name: None },
            Target::Item(id, name) => Definition { file: self.modules[id].file, name: Some(name) },
        })
    }

    fn target(&self, module: ModuleId, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.modules[module].parent?),
            name => self.lookup(module, name, depth)?,
        };
        for name in rest {
            target = match target {
                Target::Module(id) if name == "super" => Target::Module(self.modules[id].parent?),
                Target::Module(id) => self.lookup(id, name, depth)?,
                // A variant or associated item belongs to its type.
                item @ Target::Item(..) => return Some(item),
            };
        }
        Some(target)
    }

    fn lookup(&self, id: ModuleId, name: &str, depth: usize) -> Option<Target> {
        if depth > RE_EXPORTS_MAX {
            return None;
        }
        let module = &self.modules[id];
        if let Some(child) = module.children.get(name) {
            return Some(Target::Module(*child));
        }
        if module.defined.iter().any(|defined| defined == name) {
            return Some(Target::Item(id, name.to_owned()));
        }
        if let Some(path) = module.imported.get(name) {
            // `use x::x;` of another crate would otherwise find itself.
            let is_itself = path.first().is_some_and(|first| first == name);
            return if is_itself { None } else { self.target(id, path, depth + 1) };
        }
        module.glob_modules.iter().find_map(|from| self.lookup(*from, name, depth + 1))
    }
}

/// Returns the names of a `use` item.
pub(crate) fn use_leaves(tree: &syn::UseTree) -> Vec<UseLeaf> {
    let mut leaves = Vec::new();
    add_leaves(tree, &[], &mut leaves);
    leaves
}

fn add_leaves(tree: &syn::UseTree, prefix: &[String], leaves: &mut Vec<UseLeaf>) {
    let join = |name: &syn::Ident| {
        let mut path = prefix.to_vec();
        path.push(name.to_string());
        path
    };
    match tree {
        syn::UseTree::Path(path) => add_leaves(&path.tree, &join(&path.ident), leaves),
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                add_leaves(tree, prefix, leaves);
            }
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            leaves.push(UseLeaf { path: prefix.to_vec(), alias: prefix.last().cloned() });
        }
        syn::UseTree::Name(name) => {
            leaves.push(UseLeaf { path: join(&name.ident), alias: Some(name.ident.to_string()) });
        }
        syn::UseTree::Rename(name) => {
            leaves.push(UseLeaf { path: join(&name.ident), alias: Some(name.rename.to_string()) });
        }
        syn::UseTree::Glob(_) => leaves.push(UseLeaf { path: prefix.to_vec(), alias: None }),
    }
}

/// Returns true if an item is compiled only for tests.
pub(crate) fn is_for_tests(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && requires_test(list.tokens.clone())
    })
}

/// Returns true for `test`, `all(test, …)` and `any(test, …)`: the last is for tests of other
/// crates.
fn requires_test(condition: proc_macro2::TokenStream) -> bool {
    let conditions = syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated;
    let Ok(conditions) = conditions.parse2(condition) else { return false };
    conditions.iter().any(|condition| match condition {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => !list.path.is_ident("not") && requires_test(list.tokens.clone()),
        syn::Meta::NameValue(_) => false,
    })
}
