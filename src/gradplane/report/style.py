"""The report's page around its parts: markup and style, nothing from elsewhere."""

from string import Template

PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { margin: 0; background: #f6f7f9; color: #1f2937;
       font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 28px; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 18px; margin: 0 0 12px; }
h3 { font-size: 14px; margin: 16px 0 6px; color: #4b5563; }
.lead { color: #6b7280; margin: 2px 0 24px; }
section { background: #fff; border: 1px solid #e5e7eb; border-radius: 10px;
          padding: 18px 20px; margin: 0 0 18px; }
section p { margin: 0 0 12px; color: #4b5563; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr));
         gap: 14px; margin: 0 0 18px; }
.card { background: #fff; border: 1px solid #e5e7eb; border-radius: 10px; padding: 14px 16px; }
.card h3 { margin: 0; font-weight: 500; }
.card p { margin: 0; color: #6b7280; font-size: 13px; }
.card .big { font-size: 25px; color: #111827; font-weight: 600; margin: 2px 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 18px; }
svg { width: 100%; height: auto; display: block; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px;
        font-variant-numeric: tabular-nums; }
th { text-align: right; color: #6b7280; font-weight: 500; border-bottom: 1px solid #d1d5db;
     padding: 5px 10px; vertical-align: bottom; }
td { text-align: right; padding: 5px 10px; border-bottom: 1px solid #f0f1f3; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.text td { text-align: left; }
.text td:first-child { white-space: nowrap; color: #6b7280; width: 1%; padding-right: 28px; }
.text tr:last-child td { border-bottom: none; }
pre, code { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
pre { background: #f9fafb; border-radius: 8px; padding: 12px 14px; overflow-x: auto; }
summary { cursor: pointer; color: #374151; }
.warning { background: #fff7ed; border: 1px solid #fdba74; border-radius: 10px;
           padding: 12px 16px; color: #9a3412; margin: 0 0 18px; }
@media (max-width: 480px) { .grid { grid-template-columns: 1fr; } }
</style>
</head>
<body>
<main>
<h1>$title</h1>
<p class="lead">$lead</p>
$body
</main>
</body>
</html>
""")
