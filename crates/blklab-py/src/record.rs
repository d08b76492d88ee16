//! Plain data as Python objects: frozen, a property for each field, equal if all fields are.

/// A class with these fields. `FIELDS` names them in order, for code that stores them.
macro_rules! record {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, eq, get_all, module = "blklab._core")]
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[$what])* pub $field: $type,)* }

        #[pyo3::pymethods]
        impl $name {
            #[classattr]
            #[allow(non_snake_case)]
            fn FIELDS() -> Vec<&'static str> {
                vec![$(stringify!($field)),*]
            }

            fn __repr__(slf: &pyo3::Bound<'_, Self>) -> pyo3::PyResult<String> {
                use pyo3::types::PyAnyMethods;

                let field = |name: &str| Ok(format!("{name}={}", slf.getattr(name)?.repr()?));
                let fields: pyo3::PyResult<Vec<_>> = Self::FIELDS().into_iter().map(field).collect();
                Ok(format!("{}({})", stringify!($name), fields?.join(", ")))
            }
        }
    };
}

pub(crate) use record;
