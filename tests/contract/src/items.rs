//! What a contract declares, flattened: one entry for each thing that has a name.

use wit_parser::{
    Docs, Function, Handle, Interface, InterfaceId, Resolve, Stability, Type, TypeDef, TypeDefKind,
    TypeOwner, World, WorldItem, WorldKey,
};

use crate::Contract;

/// One declared thing.
#[derive(Debug)]
pub struct Item {
    /// Where it stands, such as `types.summary.bytes` or `types.[method]options.window`.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Its whole structure as text: two items of one path and one shape are the same to a
    /// component.
    pub shape: String,
    /// What its documentation says; empty where there is none.
    pub docs: String,
    /// The version in its `@since` gate.
    pub since: Option<String>,
}

/// What an [`Item`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A world.
    World,
    /// An import or export of a world, of an interface of this package.
    Port,
    /// The same of an interface of another package, which comes along by itself.
    ForeignPort,
    /// An interface.
    Interface,
    /// A type that is defined here.
    Type,
    /// A type that is used from another interface.
    Use,
    /// A field, a case or a flag of a type.
    Part,
    /// A function, a method or a constructor.
    Function,
}

impl Contract {
    /// Everything that the contract declares, in the order of its text, worlds last.
    pub fn items(&self) -> Vec<Item> {
        let package = &self.resolve.packages[self.package];
        let mut list = List {
            contract: self,
            items: Vec::new(),
        };
        for (name, id) in &package.interfaces {
            list.interface(name, &self.resolve.interfaces[*id]);
        }
        for id in package.worlds.values() {
            list.world(&self.resolve.worlds[*id]);
        }
        list.items
    }
}

struct List<'a> {
    contract: &'a Contract,
    items: Vec<Item>,
}

impl List<'_> {
    fn push(&mut self, path: &str, kind: Kind, shape: String, docs: &Docs, since: &Stability) {
        let since = match since {
            Stability::Stable { since, .. } => Some(since.to_string()),
            Stability::Unstable { .. } | Stability::Unknown => None,
        };
        let docs = docs.contents.clone().unwrap_or_default();
        self.items.push(Item {
            path: path.to_owned(),
            kind,
            shape,
            docs,
            since,
        });
    }

    fn interface(&mut self, name: &str, interface: &Interface) {
        let shape = "interface".to_owned();
        self.push(
            name,
            Kind::Interface,
            shape,
            &interface.docs,
            &interface.stability,
        );
        for (type_name, id) in &interface.types {
            let path = format!("{name}.{type_name}");
            self.definition(&path, &self.contract.resolve.types[*id]);
        }
        for function in interface.functions.values() {
            let path = format!("{name}.{}", function.name);
            self.function(&path, function);
        }
    }

    fn definition(&mut self, path: &str, definition: &TypeDef) {
        let resolve = &self.contract.resolve;
        let used = match definition.kind {
            TypeDefKind::Type(Type::Id(id)) => resolve.types[id].owner != definition.owner,
            _ => false,
        };
        let kind = if used { Kind::Use } else { Kind::Type };
        let shape = definition_shape(resolve, definition);
        self.push(path, kind, shape, &definition.docs, &definition.stability);
        let parts: Vec<(&str, &Docs)> = match &definition.kind {
            TypeDefKind::Record(record) => record
                .fields
                .iter()
                .map(|field| (&*field.name, &field.docs))
                .collect(),
            TypeDefKind::Variant(variant) => variant
                .cases
                .iter()
                .map(|case| (&*case.name, &case.docs))
                .collect(),
            TypeDefKind::Enum(cases) => cases
                .cases
                .iter()
                .map(|case| (&*case.name, &case.docs))
                .collect(),
            TypeDefKind::Flags(flags) => flags
                .flags
                .iter()
                .map(|flag| (&*flag.name, &flag.docs))
                .collect(),
            _ => Vec::new(),
        };
        for (name, docs) in parts {
            let path = format!("{path}.{name}");
            self.push(&path, Kind::Part, String::new(), docs, &Stability::Unknown);
        }
    }

    fn function(&mut self, path: &str, function: &Function) {
        let shape = function_shape(&self.contract.resolve, function);
        self.push(
            path,
            Kind::Function,
            shape,
            &function.docs,
            &function.stability,
        );
    }

    fn world(&mut self, world: &World) {
        let path = format!("world {}", world.name);
        self.push(
            &path,
            Kind::World,
            "world".to_owned(),
            &world.docs,
            &world.stability,
        );
        for (direction, ports) in [("import", &world.imports), ("export", &world.exports)] {
            for (key, item) in ports {
                self.port(&format!("{path}.{direction}"), key, item);
            }
        }
    }

    fn port(&mut self, path: &str, key: &WorldKey, item: &WorldItem) {
        let resolve = &self.contract.resolve;
        let name = match key {
            WorldKey::Name(name) => name.clone(),
            WorldKey::Interface(id) => self.interface_name(*id),
        };
        let path = format!("{path} {name}");
        match item {
            WorldItem::Interface {
                id,
                docs,
                stability,
                ..
            } => {
                let own = resolve.interfaces[*id].package == Some(self.contract.package);
                let kind = if own { Kind::Port } else { Kind::ForeignPort };
                self.push(&path, kind, self.interface_name(*id), docs, stability);
            }
            WorldItem::Function(function) => self.function(&path, function),
            WorldItem::Type { id, .. } => self.definition(&path, &resolve.types[*id]),
        }
    }

    /// Without the version for this package, which may grow; with it for the others.
    fn interface_name(&self, id: InterfaceId) -> String {
        let interface = &self.contract.resolve.interfaces[id];
        match (&interface.name, interface.package) {
            (Some(name), Some(package)) if package == self.contract.package => name.clone(),
            (Some(_), _) => self
                .contract
                .resolve
                .id_of(id)
                .expect("the interface has a name"),
            (None, _) => "inline".to_owned(),
        }
    }
}

fn function_shape(resolve: &Resolve, function: &Function) -> String {
    let parameter = |name: &str, ty| format!("{name}: {}", type_shape(resolve, ty));
    let parameters = function
        .params
        .iter()
        .map(|param| parameter(&param.name, &param.ty));
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let prefix = if function.kind.is_async() {
        "async "
    } else {
        ""
    };
    match &function.result {
        Some(result) => format!(
            "{prefix}func({parameters}) -> {}",
            type_shape(resolve, result)
        ),
        None => format!("{prefix}func({parameters})"),
    }
}

/// A type where it is used: by its name where it has one, since that name is an item of its own.
fn type_shape(resolve: &Resolve, ty: &Type) -> String {
    let name = match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext => "error-context",
        Type::Id(id) => {
            let definition = &resolve.types[*id];
            return match &definition.name {
                Some(name) => name.clone(),
                None => definition_shape(resolve, definition),
            };
        }
    };
    name.to_owned()
}

fn definition_shape(resolve: &Resolve, definition: &TypeDef) -> String {
    let shape = |ty: &Type| type_shape(resolve, ty);
    let optional = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), shape);
    let named = |name: &str, ty: &Type| format!("{name}: {}", shape(ty));
    let joined = |parts: Vec<String>| parts.join(", ");
    let name_of = |id: &wit_parser::TypeId| shape(&Type::Id(*id));
    match &definition.kind {
        TypeDefKind::Record(record) => {
            let fields = record
                .fields
                .iter()
                .map(|field| named(&field.name, &field.ty));
            format!("record {{ {} }}", joined(fields.collect()))
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter().map(|case| match &case.ty {
                Some(ty) => format!("{}({})", case.name, shape(ty)),
                None => case.name.clone(),
            });
            format!("variant {{ {} }}", joined(cases.collect()))
        }
        TypeDefKind::Enum(cases) => {
            let cases = cases.cases.iter().map(|case| case.name.clone());
            format!("enum {{ {} }}", joined(cases.collect()))
        }
        TypeDefKind::Flags(flags) => {
            let flags = flags.flags.iter().map(|flag| flag.name.clone());
            format!("flags {{ {} }}", joined(flags.collect()))
        }
        TypeDefKind::Tuple(tuple) => {
            format!("tuple<{}>", joined(tuple.types.iter().map(shape).collect()))
        }
        TypeDefKind::Resource => "resource".to_owned(),
        TypeDefKind::Handle(Handle::Own(id)) => name_of(id),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", name_of(id)),
        TypeDefKind::Option(ty) => format!("option<{}>", shape(ty)),
        TypeDefKind::Result(result) => {
            format!(
                "result<{}, {}>",
                optional(&result.ok),
                optional(&result.err)
            )
        }
        TypeDefKind::List(ty) => format!("list<{}>", shape(ty)),
        TypeDefKind::FixedLengthList(ty, length) => format!("list<{}, {length}>", shape(ty)),
        TypeDefKind::Map(key, value) => format!("map<{}, {}>", shape(key), shape(value)),
        TypeDefKind::Future(ty) => format!("future<{}>", optional(ty)),
        TypeDefKind::Stream(ty) => format!("stream<{}>", optional(ty)),
        TypeDefKind::Type(Type::Id(id)) => alias_shape(resolve, &resolve.types[*id]),
        TypeDefKind::Type(ty) => format!("type {}", shape(ty)),
        TypeDefKind::Unknown => unreachable!("a resolved package has no unknown type"),
    }
}

/// An alias of a named type, with the interface that it comes from. Versions are left out: that
/// of this package may grow, and the others stand in the imports.
fn alias_shape(resolve: &Resolve, target: &TypeDef) -> String {
    let name = target
        .name
        .as_deref()
        .expect("an alias leads to a named type");
    let TypeOwner::Interface(owner) = target.owner else {
        return format!("type {name}");
    };
    let interface = &resolve.interfaces[owner];
    let package = interface
        .package
        .map(|package| &resolve.packages[package].name);
    let package = package.map_or_else(String::new, |name| {
        format!("{}:{}/", name.namespace, name.name)
    });
    format!(
        "type {package}{}.{name}",
        interface.name.as_deref().unwrap_or_default()
    )
}
