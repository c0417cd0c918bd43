// SPDX-License-Identifier: Apache-2.0
//
// The pages of docs/ as a site. docs/index.md is its home. docs/README.md is its table of
// contents, so a page that is not listed there is not in the menu either. A link that leads to no page fails the build.
import fs from 'node:fs'
import path from 'node:path'
import { defineConfig } from 'vitepress'
import { withMermaid } from 'vitepress-plugin-mermaid'

const repository = 'https://github.com/fluxrollouts/rollout-controller'
const docs = './docs'
const version = process.env.VERSION || 'dev'

export default withMermaid(defineConfig({
  title: 'Rollout Controller',
  description: 'Promotes the releases that Flux finds: when gates and time windows allow it, with a bake and a history.',
  srcDir: docs,
  outDir: process.env.SITE,
  cacheDir: './cache',
  cleanUrls: true,
  rewrites: (page) => (page === 'README.md' ? 'contents.md' : page.replace(/README\.md$/, 'index.md')),
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/logo.svg' }]],
  markdown: {
    anchor: { slugify: place },
    config: (md) => {
      md.core.ruler.push('outside', pointOutside)
      leaveCodeAlone(md)
    },
  },
  themeConfig: {
    logo: '/logo.svg',
    nav: [
      { text: 'Quick start', link: '/quickstart' },
      { text: 'Documentation', link: '/contents' },
      { text: version, link: `${repository}/releases` },
    ],
    outline: [2, 3],
    search: { provider: 'local' },
    sidebar: menu(fs.readFileSync(path.join(docs, 'README.md'), 'utf8')),
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
  },
}))

// place returns the anchor of a heading, the same as on GitHub: links work on both.
function place(heading) {
  return heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replace(/ /g, '-')
}

// pointOutside lets links to files outside docs/ lead to the repository.
function pointOutside(state) {
  for (const token of state.tokens.flatMap((block) => block.children ?? [])) {
    const target = token.type === 'link_open' ? token.attrGet('href') : null
    if (!target || /^([a-z]+:|#|\/)/.test(target)) continue
    const file = path.posix.join('docs', path.posix.dirname(state.env.relativePath), target)
    const isPage = /\.md(#|$)/.test(file)
    if (!file.startsWith('docs/') || !isPage) token.attrSet('href', `${repository}/blob/main/${file}`)
    else token.attrSet('href', target.replace(/README\.md(?=#|$)/, file.startsWith('docs/README.md') ? 'contents.md' : 'index.md'))
  }
}

// leaveCodeAlone keeps Vue from evaluating {{ }} in code in a text, as in blocks of code.
function leaveCodeAlone(md) {
  const render = md.renderer.rules.code_inline
  md.renderer.rules.code_inline = (tokens, index, ...others) => {
    tokens[index].attrSet('v-pre', '')
    return render(tokens, index, ...others)
  }
}

// menu returns the lists of the table of contents as groups.
function menu(contents) {
  const groups = []
  for (const line of contents.split('\n')) {
    const heading = line.match(/^(\w[\w ]*):$/)
    if (heading) groups.push({ text: heading[1], items: [] })
    if (!groups.length) continue
    for (const [, text, page] of line.matchAll(/\[([^\]]+)\]\(([^)]+\.md(?:#[^)]*)?)\)/g)) {
      if (!page.startsWith('..')) groups.at(-1).items.push({ text, link: addressOf(page), ...below(page) })
    }
  }
  return groups
}

function addressOf(page) {
  return `/${page.replace(/(README)?\.md(?=#|$)/, '')}`
}

// below returns the pages beside a README of the command line as a group that is closed at first.
function below(page) {
  if (page !== 'cli/reference/README.md') return {}
  const folder = path.dirname(page)
  const names = fs.readdirSync(path.join(docs, folder)).filter((name) => name !== 'README.md')
  return {
    collapsed: true,
    items: names.map((name) => ({ text: name.replace('.md', '').replace('-', ' '), link: addressOf(`${folder}/${name}`) })),
  }
}
