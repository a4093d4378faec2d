# SPDX-License-Identifier: BSD-3-Clause
"""utils/gen_html.py makes a page of each *.md, whose links and headings exist."""

import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class GenHtml(unittest.TestCase):
    def test_all_links_of_all_pages_lead_to_files_and_headings(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([f"{ROOT}/utils/gen_html.py", f"{folder}/html"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
            if "python3-markdown is missing" in done.stdout:
                self.skipTest("python3-markdown is not installed")
            self.assertEqual(0, done.returncode, done.stdout)
            texts = {}
            for top, _, names in os.walk(f"{folder}/html"):
                for name in names:
                    if name.endswith(".html"):
                        with open(os.path.join(top, name), encoding="utf-8") as file:
                            texts[os.path.join(top, name)] = file.read()
            self.assertIn(f"{folder}/html/index.html", texts)
            for path, text in texts.items():
                self.assertIsNone(re.search(r"^\||```", text, flags=re.M), f"{path}: raw Markdown")
                for target, heading in re.findall(r'(?:href|src)="([^"#:]*)(?:#([^"]*))?"', text):
                    where = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
                    self.assertTrue(os.path.isfile(where), f"{path}: {target}")
                    if heading and where in texts:
                        self.assertIn(f'id="{heading}"', texts[where], f"{path}: {target}#{heading}")


if __name__ == "__main__":
    unittest.main()
