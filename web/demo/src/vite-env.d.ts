/// <reference types="vite/client" />
// Demo: types of what Vite imports (style sheets, addresses of files).
