// The rules that a page for strangers' addresses needs: nothing evaluated, nothing set as HTML.
const noHtml = ["innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc"].map((name) => ({
  selector: `[property.name="${name}"]`,
  message: "Set textContent: what comes from an address must not become HTML.",
}));

export default [
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module" },
    rules: {
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-syntax": ["error", ...noHtml],
      "no-unused-vars": "error",
      "prefer-const": "error",
      eqeqeq: ["error", "always", { null: "ignore" }],
    },
  },
];
