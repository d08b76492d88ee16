//! Plain data as Python objects: frozen, a property for each field.

/// A class with these fields. `FIELDS` names them in order, for code that stores them.
macro_rules! record {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, get_all, module = "blklab._core")]
        #[derive(Clone, Debug)]
        pub struct $name { $($(#[$what])* pub $field: $type,)* }

        #[pyo3::pymethods]
        impl $name {
            #[classattr]
            #[allow(non_snake_case)]
            fn FIELDS() -> Vec<&'static str> {
                vec![$(stringify!($field)),*]
            }
        }
    };
}

pub(crate) use record;
