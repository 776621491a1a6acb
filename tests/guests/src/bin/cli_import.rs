//! A program that imports what no host has: `cli_import`.

mod bindings {
    #![allow(unsafe_code, reason = "generated: the calls of the component model")]

    wit_bindgen::generate!({
        inline: "
            package nobody:has@1.2.3;

            interface things {
                thing: func();
            }

            world needs {
                import things;
            }
        ",
    });
}

fn main() {
    bindings::nobody::has::things::thing();
}
